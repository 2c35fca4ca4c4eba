"""Samples: what every run of a benchmark measured, kept so that every published figure can be traced to its runs.

A sample is one run: which suite, broker and client, the parameters, the figures.  All samples of a command go to

- a file, DIRECTORY/<suite>-<time>.json: machine, versions, commit and command, and the samples (sample.schema.json);
- a topic, `hmb.bench`: each sample a record, the suite its key, with machine and versions beside it, ready for a
  consumer, or for Spark.  The topic is that of a broker in the benchmark's own process with its data in
  DIRECTORY/topic (`hmb broker --data-dir DIRECTORY/topic` serves it later), or that of `--publish HOST:PORT`.

It is written between the runs, when nothing is measured.
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

TOPIC = "hmb.bench"
SCHEMA = 1
DIRECTORY = Path("hmb-bench")
PACKAGES = ("hmb", "crc32c", "cramjam", "confluent-kafka", "kafka-python", "aiokafka", "pyarrow", "pyspark")


@dataclass(frozen=True)
class Sample:
    """One run."""

    suite: str
    broker: str
    client: str
    turn: int
    parameters: Mapping[str, float | str]
    figures: Mapping[str, float]
    at: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


def surroundings() -> dict[str, object]:
    """Where the runs took place: what a reader has to know to compare them with others."""
    return {
        "machine": {"system": platform.platform(), "cpu": _cpu_model(), "cores": os.cpu_count(), "memory": _memory()},
        "versions": {"python": platform.python_version(), "java": _java(), **_package_versions()},
        "commit": _commit(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


class Samples:
    """Takes samples as they come, into the file and the topic."""

    def __init__(self, suite: str, directory: Path, producer: hmb.Producer) -> None:
        self._surroundings = surroundings()
        self._samples: list[Sample] = []
        self._producer = producer
        self._run = f"{suite}-{time.strftime('%Y%m%d-%H%M%S')}"
        self.path = directory / f"{self._run}.json"

    def add(self, sample: Sample) -> None:
        self._samples.append(sample)
        record = {"run": self._run, **asdict(sample), **self._surroundings}
        self._producer.send(TOPIC, json.dumps(record).encode(), sample.suite.encode()).result()
        self.path.write_text(json.dumps(self.document, indent=1) + "\n")

    @property
    def taken(self) -> Sequence[Sample]:
        """All so far."""
        return self._samples

    @property
    def document(self) -> dict[str, object]:
        """What the file says."""
        samples = [asdict(each) for each in self._samples]
        return {"schema": SCHEMA, "run": self._run, **self._surroundings, "samples": samples}


def read(path: Path) -> dict[str, Any]:
    """A file of samples.  Raises OSError, ValueError."""
    document = json.loads(path.read_text())
    if not isinstance(document, dict) or not document.get("samples"):
        raise ValueError(f"{path} is no file of samples, as `hmb bench` writes them")
    return document


def samples_of(document: Mapping[str, Any]) -> list[Sample]:
    """Those of a file that was read."""
    return [Sample(**each) for each in document["samples"]]


@contextmanager
def collect(suite: str, directory: Path = DIRECTORY, publish: str | None = None) -> Iterator[Samples]:
    """Where the samples of a suite go; OSError or KafkaError where they cannot."""
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
    """Bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _java() -> str | None:
    lines = _said("java", "-version").splitlines()
    return lines[0] if lines else None


def _commit() -> str | None:
    """Of the checkout that this is run from, if it is one; marked where files differ from it."""
    root = str(Path(__file__).resolve().parents[2])
    commit = _said("git", "-C", root, "rev-parse", "HEAD").strip()
    changed = _said("git", "-C", root, "status", "--porcelain", "--untracked-files=no").strip()
    return f"{commit}{' and changes' if changed else ''}" if commit else None


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""
