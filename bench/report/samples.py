"""Samples: the stored results of each run, so that a reader can trace every published figure to its runs.

A sample is one run: its suite (the scenario's name), broker, client, parameters and figures. All samples of a command
go to two destinations::

    DIRECTORY/<suite>-<time>.json    the samples, with machine, versions, commit and command (sample.schema.json)
    topic hmb.bench                  one record a sample; the key is the suite, and the value adds machine and versions

A consumer or Spark can read the topic. By default its broker runs in the process of the benchmark, and its data is in
`DIRECTORY/topic`; `hmb broker --data-dir DIRECTORY/topic` serves it later. `--publish HOST:PORT` names another broker.

The process writes a sample after its run, while it measures nothing.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import hmb

from ..errors import InvalidSamples

TOPIC = "hmb.bench"
SCHEMA = 1
DIRECTORY = Path("hmb-bench")
PACKAGES = (
    "hmb", "crc32c", "cramjam", "confluent-kafka", "kafka-python", "aiokafka", "pyarrow", "pyspark", "bytewax",
    "quixstreams",
)  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """One run. The fields are the keys of published files."""

    suite: str
    broker: str
    client: str
    turn: int  # the number of the round, from 0; the runs of one round are consecutive
    parameters: Mapping[str, float | str]
    figures: Mapping[str, float]
    at: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


def environment() -> dict[str, object]:
    """Return machine, versions, commit and command. A reader needs them to compare these runs with other runs."""
    return {
        "machine": {"system": platform.platform(), "cpu": _cpu_model(), "cores": os.cpu_count(), "memory": _memory()},
        "versions": {"python": platform.python_version(), "java": _java(), **_package_versions()},
        "commit": _commit(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


class Samples:
    """The samples of one command. `add` writes each of them to the file and to the topic."""

    def __init__(self, suite: str, directory: Path, producer: hmb.Producer) -> None:
        self._environment = environment()
        self._samples: list[Sample] = []
        self._producer = producer
        self._run = f"{suite}-{time.strftime('%Y%m%d-%H%M%S')}"
        self.path = directory / f"{self._run}.json"

    def add(self, sample: Sample) -> None:
        """Keep a sample. Raises OSError, KafkaError."""
        self._samples.append(sample)
        record = {"run": self._run, **asdict(sample), **self._environment}
        self._producer.send(TOPIC, json.dumps(record).encode(), sample.suite.encode()).result()
        self.path.write_text(json.dumps(self.document, indent=1) + "\n")

    @property
    def taken(self) -> Sequence[Sample]:
        """All samples so far."""
        return self._samples

    @property
    def document(self) -> dict[str, object]:
        """The content of the file of samples: the description of the machine and the samples."""
        samples = [asdict(each) for each in self._samples]
        return {"schema": SCHEMA, "run": self._run, **self._environment, "samples": samples}


def read(path: Path) -> dict[str, Any]:
    """Read a file of samples. Raises OSError, InvalidSamples."""
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        raise InvalidSamples(f"{path} is not a file of samples: {error}") from error
    if not isinstance(document, dict) or not document.get("samples"):
        raise InvalidSamples(f"{path} is not a file of samples that `hmb bench` wrote")
    return document


def samples_of(document: Mapping[str, Any]) -> list[Sample]:
    """Return the samples of a file that `read` returned."""
    return [Sample(**each) for each in document["samples"]]


@contextmanager
def collect(suite: str, directory: Path = DIRECTORY, publish: str | None = None) -> Iterator[Samples]:
    """Open the file and the topic for the samples of a suite. Raises OSError, KafkaError."""
    directory.mkdir(parents=True, exist_ok=True)
    if publish is not None:
        with hmb.Producer(publish) as producer:
            yield Samples(suite, directory, producer)
        return
    with hmb.Broker(directory / "topic") as broker, hmb.Producer(broker.bootstrap_servers) as producer:
        yield Samples(suite, directory, producer)


def _package_versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _memory() -> int:
    """Return the size of the machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _java() -> str | None:
    lines = _output("java", "-version").splitlines()
    return lines[0] if lines else None


def _commit() -> str | None:
    """Return the commit of the checkout that runs, with "and changes" if files differ; None without a checkout."""
    root = str(Path(__file__).resolve().parents[2])
    commit = _output("git", "-C", root, "rev-parse", "HEAD").strip()
    changed = _output("git", "-C", root, "status", "--porcelain", "--untracked-files=no").strip()
    return f"{commit}{' and changes' if changed else ''}" if commit else None


def _output(*command: str) -> str:
    """Return what a command prints; "" if it fails or does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""
