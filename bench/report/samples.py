"""Samples: the stored results of each run of a benchmark, from which all published figures are calculated.

A sample contains the results of one run: the suite (the name of the benchmark), the broker, the client, the parameters
and the figures. A benchmark writes each sample into a file and into a topic:
    DIRECTORY/<suite>-<time>.json    the samples, with machine, versions, commit and command (sample.schema.json)
    topic hmb.bench                  one record for each sample, with the same information; the key is the suite

A consumer or Spark can read the samples in the topic `hmb.bench`. By default, the benchmark itself runs a broker,
which stores this topic in `DIRECTORY/topic`. After the benchmark, `hmb broker --data-dir DIRECTORY/topic` serves this
topic. With `--publish HOST:PORT`, another broker stores the topic.

The benchmark writes the sample of a run after the end of this run. The writing therefore does not slow down the run.
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
    """The results of one run of a benchmark. In the JSON file, the keys of a sample are the names of these fields."""

    suite: str
    broker: str
    client: str
    turn: int  # the number of the round, beginning at 0
    parameters: Mapping[str, float | str]
    figures: Mapping[str, float]
    at: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


def environment() -> dict[str, object]:
    """Return the machine, the versions, the commit and the command: the facts that a reader needs to compare runs."""
    return {
        "machine": {"system": platform.platform(), "cpu": _cpu_model(), "cores": os.cpu_count(), "memory": _memory()},
        "versions": {"python": platform.python_version(), "java": _java(), **_package_versions()},
        "commit": _commit(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


class Samples:
    """The samples of one benchmark command. A sample contains the results of one run.

    Each call of `add` sends one sample to the topic `hmb.bench`, and rewrites a JSON file with all samples so far.
    """

    def __init__(self, suite: str, directory: Path, producer: hmb.Producer) -> None:
        self._environment = environment()
        self._samples: list[Sample] = []
        self._producer = producer
        self._run = f"{suite}-{time.strftime('%Y%m%d-%H%M%S')}"
        self.path = directory / f"{self._run}.json"

    def add(self, sample: Sample) -> None:
        """Send the results of a run to the topic `hmb.bench`, and add them to the JSON file at `self.path`.

        Raises OSError, KafkaError.
        """
        self._samples.append(sample)
        record = {"run": self._run, **asdict(sample), **self._environment}
        self._producer.send(TOPIC, json.dumps(record).encode(), sample.suite.encode()).result()
        self.path.write_text(json.dumps(self.document, indent=1) + "\n")

    @property
    def taken(self) -> Sequence[Sample]:
        """All samples that were added until now."""
        return self._samples

    @property
    def document(self) -> dict[str, object]:
        """The content of the file: the samples, and the description of the machine, versions, commit and command."""
        samples = [asdict(each) for each in self._samples]
        return {"schema": SCHEMA, "run": self._run, **self._environment, "samples": samples}


def read(path: Path) -> dict[str, Any]:
    """Read a file of samples, and return its content. Raises OSError, InvalidSamples."""
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        raise InvalidSamples(f"{path} is not a file of samples: {error}") from error
    if not isinstance(document, dict) or not document.get("samples"):
        raise InvalidSamples(f"{path} is not a file of samples that `hmb bench` wrote")
    return document


def samples_of(document: Mapping[str, Any]) -> list[Sample]:
    """Return the samples in `document`, which is the content of a file as `read` returns it."""
    return [Sample(**each) for each in document["samples"]]


@contextmanager
def collect(suite: str, directory: Path = DIRECTORY, publish: str | None = None) -> Iterator[Samples]:
    """Yield a `Samples` object, which stores the samples of a suite in a JSON file and in a topic.

    Use this function in a `with` statement. `publish` is the address of the broker that stores the topic. If it is
    None, the function runs a broker of its own until the end of the `with` block. Raises OSError, KafkaError.
    """
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
    """Return the git commit of this code, or None outside a git repository.

    Add "and changes" if files have changed since the commit.
    """
    root = str(Path(__file__).resolve().parents[2])
    commit = _output("git", "-C", root, "rev-parse", "HEAD").strip()
    changed = _output("git", "-C", root, "status", "--porcelain", "--untracked-files=no").strip()
    return f"{commit}{' and changes' if changed else ''}" if commit else None


def _output(*command: str) -> str:
    """Return the output of a command, or "" if the command fails or does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""
