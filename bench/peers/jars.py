"""Finds the folders with Kafka's jars, the Java files that contain Kafka's broker and tools.

Kafka is not a part of this project. A benchmark looks for the jars of each Kafka release in these folders, in this
order:
1. the folder of the option `--kafka-dir`, or of the environment variable HMB_KAFKA_43 or HMB_KAFKA_082;
2. `.peers/` in the root of the checkout, into which `hmb bench fetch-kafka` downloads the jars;
3. without a checkout, `hmb/kafka` in the user's cache, into which the same command downloads the jars.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from ..errors import PeerUnavailable

CLIENT_OPTIONS = ["-Xmx512M", "-XX:+UseG1GC"]  # the options of the JVM for a client of Kafka 4.3.0
KAFKA_43_VARIABLE = "HMB_KAFKA_43"
KAFKA_082_VARIABLE = "HMB_KAFKA_082"
KAFKA_STREAMS_VARIABLE = "HMB_KAFKA_STREAMS"
KAFKA_MIRROR_VARIABLE = "HMB_KAFKA_MIRROR"


def fetch_folder(root: Path) -> Path:
    """Return the folder for jars: .peers if `root` is a checkout of HMB, otherwise hmb/kafka in the user's cache."""
    if (root / "pyproject.toml").exists():
        return root / ".peers"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hmb" / "kafka"


FETCHED = fetch_folder(Path(__file__).resolve().parents[2])


def kafka_43_jars() -> Path:
    """Return the folder with the jars of Kafka 4.3.0 (broker and tools). Raises PeerUnavailable."""
    return _jars(KAFKA_43_VARIABLE, FETCHED / "k43" / "libs")


def kafka_082_jars() -> Path:
    """Return the folder with the jars of Kafka 0.8.2.2 and ZooKeeper. Raises PeerUnavailable."""
    return _jars(KAFKA_082_VARIABLE, FETCHED / "k082" / "libs")


def kafka_streams_jars() -> Path:
    """Return the folder with the jars of Kafka Streams 4.3.0. Raises PeerUnavailable."""
    return _jars(KAFKA_STREAMS_VARIABLE, FETCHED / "streams" / "libs")


def kafka_mirror_jars() -> Path:
    """Return the folder with the jars of MirrorMaker 2 of Kafka 4.3.0. Raises PeerUnavailable."""
    return _jars(KAFKA_MIRROR_VARIABLE, FETCHED / "mirror" / "libs")


def use_kafka(folder: Path) -> None:
    """Use the jars in `folder`, or in its subfolders k43/libs (Kafka 4.3.0) and k082/libs (Kafka 0.8.2.2).

    Raises PeerUnavailable if the folder and its subfolders contain no file kafka-clients-*.jar.
    """
    for variable, libs, version in ((KAFKA_43_VARIABLE, "k43/libs", "4"), (KAFKA_082_VARIABLE, "k082/libs", "0.8.2")):
        for candidate in (folder / libs, folder / "libs", folder):
            if any(candidate.glob(f"kafka-clients-{version}*.jar")):
                os.environ[variable] = str(candidate)
                break
    if not any(folder.rglob("kafka-clients-*.jar")):
        raise PeerUnavailable(f"no Kafka in {folder}: expected kafka-clients-4.3.0.jar, or the folders k43 and k082")


def java(jars: Path, main_class: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
    """Return the command line that runs the Java class `main_class` of Kafka. `options` are options of the JVM."""
    return ["java", *options, "-Dfile.encoding=UTF-8", "-cp", f"{jars}/*", main_class, *arguments]


def _jars(variable: str, default: Path) -> Path:
    folder = Path(os.environ.get(variable) or default)
    if not any(folder.glob("kafka*.jar")):
        repair = f"run `hmb bench fetch-kafka`, or name the folder of the jars with --kafka-dir or {variable}"
        raise PeerUnavailable(f"no Kafka in {folder}: {repair}")
    if shutil.which("java") is None:
        raise PeerUnavailable("Kafka needs Java, and the PATH contains no java")
    return folder
