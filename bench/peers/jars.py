"""The folders of Kafka's jars. Kafka is not part of this project. Its brokers and tools run from these jars.

A process looks for the jars of each Kafka in this order:

1. the folder that `--kafka-dir` or the variable HMB_KAFKA_43 or HMB_KAFKA_082 names;
2. `.peers/` in the root of the checkout, where `hmb bench fetch-kafka` puts them;
3. without a checkout, `hmb/kafka` in the user's cache, where the same command puts them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from ..errors import PeerUnavailable

KAFKA_43_VARIABLE = "HMB_KAFKA_43"
KAFKA_082_VARIABLE = "HMB_KAFKA_082"
KAFKA_STREAMS_VARIABLE = "HMB_KAFKA_STREAMS"


def fetch_folder(root: Path) -> Path:
    """Return the folder for fetched jars: `.peers` if `root` is a checkout, else a folder of the user's cache."""
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


def use_kafka(folder: Path) -> None:
    """Use the jars in `folder`, which has k43/libs and k082/libs, or is the folder of one Kafka.

    Raises PeerUnavailable if the folder contains no jar of Kafka's clients.
    """
    for variable, libs, version in ((KAFKA_43_VARIABLE, "k43/libs", "4"), (KAFKA_082_VARIABLE, "k082/libs", "0.8.2")):
        for candidate in (folder / libs, folder / "libs", folder):
            if any(candidate.glob(f"kafka-clients-{version}*.jar")):
                os.environ[variable] = str(candidate)
                break
    if not any(folder.rglob("kafka-clients-*.jar")):
        raise PeerUnavailable(f"no Kafka in {folder}: expected kafka-clients-4.3.0.jar, or the folders k43 and k082")


def java(jars: Path, main_class: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
    """Return the command line that runs one of Kafka's classes; `options` are options of the JVM."""
    return ["java", *options, "-Dfile.encoding=UTF-8", "-cp", f"{jars}/*", main_class, *arguments]


def _jars(variable: str, default: Path) -> Path:
    folder = Path(os.environ.get(variable) or default)
    if not any(folder.glob("kafka*.jar")):
        repair = f"run `hmb bench fetch-kafka`, or name the folder of the jars with --kafka-dir or {variable}"
        raise PeerUnavailable(f"no Kafka in {folder}: {repair}")
    if shutil.which("java") is None:
        raise PeerUnavailable("Kafka needs Java, and the PATH contains no java")
    return folder
