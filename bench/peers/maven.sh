# maven.sh: for scripts that bring jars (`source` it).

dependency() { # GROUP ARTIFACT VERSION
  printf '<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>' "$@"
}

fetch_jars() { # FOLDER DEPENDENCIES: fetched beside its place and moved there whole, so that a broken download is taken for nothing else
  [ -d "$1" ] && return
  local building
  mkdir -p "$(dirname "$1")"
  building=$(mktemp -d "$(dirname "$1")/building-XXXXXX")
  cat > "$building/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>hmb</groupId><artifactId>jars</artifactId><version>1</version><dependencies>$2</dependencies></project>
POM
  (cd "$building" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=libs)
  mv "$building/libs" "$1"
  rm -r "$building"
}
