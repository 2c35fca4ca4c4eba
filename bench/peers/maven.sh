# maven.sh: functions for scripts that fetch jars with Maven. Use it with `source`.

dependency() { # GROUP ARTIFACT VERSION
  printf '<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>' "$@"
}

# The jars arrive in a temporary folder, which is renamed at the end: a FOLDER that exists is complete.
fetch_jars() { # FOLDER DEPENDENCIES
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
