#!/usr/bin/env bash
# fetch_librdkafka.sh [FOLDER]: downloads librdkafka with its integration tests, which are part of the crate rdkafka-sys, into FOLDER
# and builds them. The default FOLDER is .peers/librdkafka in the root of the project, where `python -m tests.conformance.librdkafka`
# looks for them. For another folder set HMB_LIBRDKAFKA. The download needs cargo. The build needs make, a C++ compiler and the headers of
# OpenSSL (the package libssl-dev of Debian), and takes about three minutes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:-$here/../../.peers/librdkafka}
version=4.10.0+2.12.1
[ -x "$folder/tests/test-runner" ] && exit
for program in cargo make g++; do
  command -v "$program" >/dev/null || { echo "fetch_librdkafka.sh: needs $program on the PATH" >&2; exit 1; }
done

crate=$(mktemp -d)
trap 'rm -rf "$crate"' EXIT
mkdir -p "$crate/src" "$folder"
touch "$crate/src/lib.rs"
printf '[package]\nname = "tests"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nrdkafka-sys = "=%s"\n' "$version" > "$crate/Cargo.toml"
(cd "$crate" && cargo vendor -q --versioned-dirs > /dev/null)
cp -r "$crate/vendor/rdkafka-sys-$version/librdkafka/." "$folder"
cd "$folder"
chmod +x configure lds-gen.py tests/*.sh
./configure --disable-gssapi --enable-ssl --disable-curl --disable-zstd > build.log
make -j2 libs >> build.log 2>&1 && make -j2 -C tests build >> build.log 2>&1 || { tail -n 20 build.log >&2; exit 1; }
