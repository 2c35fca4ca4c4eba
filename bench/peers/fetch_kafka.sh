#!/usr/bin/env bash
# fetch_kafka.sh [FOLDER]: fetch the jars of Apache Kafka 4.3.0 and 0.8.2.2 with Maven into FOLDER/k43/libs and
# FOLDER/k082/libs. The default FOLDER is .peers in the root of the project, where tests and benchmarks look for them.
# For another folder set HMB_KAFKA_43 and HMB_KAFKA_082. The script keeps a folder that exists. `hmb bench fetch-kafka`
# runs this script, also from an installed package, and chooses the folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:-$here/../../.peers}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
source "$here/maven.sh"

command -v mvn >/dev/null || { echo "fetch_kafka.sh: mvn (Maven) is not on the PATH" >&2; exit 1; }

fetch_jars "$folder/k43/libs" "$(dependency org.apache.kafka kafka_2.13 4.3.0)$(dependency org.apache.kafka kafka-tools 4.3.0)$(dependency org.slf4j slf4j-nop 1.7.36)"
fetch_jars "$folder/streams/libs" "$(dependency org.apache.kafka kafka-streams 4.3.0)$(dependency org.slf4j slf4j-nop 1.7.36)"
fetch_jars "$folder/mirror/libs" "$(dependency org.apache.kafka connect-mirror 4.3.0)$(dependency org.slf4j slf4j-nop 1.7.36)"  # MirrorMaker 2
fetch_jars "$folder/slf4j-simple/libs" "$(dependency org.slf4j slf4j-simple 1.7.36)"  # A test reads what Kafka logs.
fetch_jars "$folder/k082/libs" "$(dependency org.apache.kafka kafka_2.10 0.8.2.2)$(dependency org.apache.kafka kafka-clients 0.8.2.2)$(dependency org.slf4j slf4j-nop 1.7.36)"
echo "Kafka 4.3.0 is in $folder/k43/libs, Kafka 0.8.2.2 in $folder/k082/libs"
