"""Batch loads: a topic's records into Parquet files, each once, with the offsets in the same commit as the data.

Kafka 0.7 loaded Hadoop like this: a load job wrote the offset it had come to beside its output, and after a crash it
began there again.  "This solves a distributed consensus problem, by removing the distributed part": there is one place,
so there is one commit.  Here the place is a directory, and the commit one rename of one folder:

    DIR/run=00000001/part-*.parquet     the records of a range of offsets of each partition
    DIR/run=00000001/_manifest.json     that range, and how many rows these are
    DIR/run=00000002/...
    DIR/_tmp-00000003/...               a run that has not been committed: under way, or of a process that died
    DIR/_lock                           held while a load runs

A run: take the lock; delete what was not committed; begin where the last manifest ends; write data and manifest to
`_tmp-N`, sync them, rename it to `run=N`, sync DIR.  A process that dies before the rename has changed nothing that
anybody sees, and one that dies after it has committed; there is nothing in between, so that all runs together hold each
record once.  Nothing is cleaned up on an error: the next run does it, in the same way after an exception as after a
power cut.

Whoever reads need not know: Spark, pandas and Arrow take `run=N` for a column, and overlook names that begin with `_`:

    spark.read.parquet(DIR)

The columns are those of the data source, headers included.  A record that retention deleted before it was loaded is
lost, which is an error (failOnDataLoss=false among the options: a warning in the log).

Left out: object stores, which have no rename of a folder, and a lock over several machines; DIR is a folder of a file
system that the driver and all workers see.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hmb.client.metadata import Cluster
from hmb.defaults import DEFAULT_SERVER
from hmb.spark.offsets import Offsets, ends, from_json, partitions_of, to_json
from hmb.spark.options import OptionError, source_options
from hmb.spark.ranges import limited
from hmb.spark.sessions import check, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN, UNCOMMITTED, MANIFEST, LOCK = "run=", "_tmp-", "_manifest.json", "_lock"
CHOSEN = ("assign", "subscribe", "starting", "ending", "kafka.bootstrap.")  # options that are not taken
RECORDS_A_RUN = 10_000_000


class LoadError(Exception):
    """A load that cannot go on; says why and what to do."""


class Run(NamedTuple):
    """What one commit holds: of each partition the offsets from `start` on, before `end`."""

    number: int
    topic: str
    topic_id: str
    start: Offsets
    end: Offsets
    rows: int
    files: int

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "start": to_json(self.start), "end": to_json(self.end)}

    @classmethod
    def from_json(cls, text: str) -> Run:
        said = json.loads(text)
        return cls(**{**said, "start": from_json(said["start"]), "end": from_json(said["end"])})


def load(
    topic: str,
    directory: str | Path,
    bootstrap_servers: str = DEFAULT_SERVER,
    *,
    options: Mapping[str, str] | None = None,
    records_a_run: int = RECORDS_A_RUN,
    spark: SparkSession | None = None,
    on_commit: Callable[[Run, int], object] = lambda run, left: None,
) -> list[Run]:
    """Load what the topic has now and the directory has not; the commits that this made.

    `options` are further ones of the data source; `on_commit` is called after each commit, with the number of offsets
    that are left.  Raises LoadError, SparkUnavailableError, DataLossError, KafkaError, ConnectionFailed, OptionError.
    """
    if spark is None:
        check()
    _check_options(options or {})
    root = Path(directory).absolute()
    given = {**(options or {}), "kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic}
    made: list[Run] = []
    with closing(Cluster(bootstrap_servers, "hmb-spark")) as cluster, ExitStack() as stack:
        cluster.topic(topic)  # no directory is made for one that is not there
        stack.enter_context(_locked(root))
        sweep(root)
        target = None  # what came while it loads is for the next load
        while True:
            planned, target = _plan(cluster, topic, root, given, records_a_run, target)
            if planned is None:
                return made
            spark = spark or session(f"hmb load {topic}")
            made.append(_commit(root, _written(spark, root, planned, given)))
            on_commit(made[-1], sum(target[it] - made[-1].end[it] for it in target))


def runs(directory: str | Path) -> list[Run]:
    """What is committed, in order."""
    return [_run_of(path / MANIFEST) for path in sorted(Path(directory).glob(f"{RUN}*"))]


def _run_of(manifest: Path) -> Run:
    try:
        return Run.from_json(manifest.read_text())
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        why = f"{manifest} does not say which offsets its folder holds: {type(error).__name__}: {error}"
        raise LoadError(f"{why}; was the folder changed by hand? load into a new directory") from error


def _check_options(options: Mapping[str, str]) -> None:
    """What is read is settled by the manifests alone: otherwise these would say what is not true."""
    for name in options:
        if name.lower().startswith(CHOSEN) or name.lower() == "includeheaders":
            raise OptionError(
                f"option {name!r}: a load chooses by itself what it reads, each record once, with headers"
            )


def sweep(root: Path) -> None:
    """Delete what was not committed."""
    for path in root.glob(f"{UNCOMMITTED}*"):
        shutil.rmtree(path)


def _plan(
    cluster: Cluster, topic: str, root: Path, given: Mapping[str, str], most: int, target: Offsets | None
) -> tuple[Run | None, Offsets]:
    """The next run, without its rows, or None if nothing is left; and how far to go in all."""
    from hmb.spark import tasks  # not before `check` has looked for pyarrow
    from hmb.spark.tasks import isolation_level

    settings = source_options(given, streaming=False)
    before = runs(root)
    partitions = partitions_of(cluster, settings)
    topic_id = str(cluster.topic(topic).topic_id)
    if before:
        _check_same_topic(root, before[-1], topic, topic_id)
    first, last = ends(cluster, partitions, isolation_level(settings))
    target = target or last
    start = {it: first[it] for it in target}
    if before:
        start |= {it: offset for it, offset in before[-1].end.items() if it in target}
    for it, offset in start.items():
        if offset > last[it]:
            raise LoadError(f"{root} has {it} up to {offset}, and the log ends at {last[it]}: was the topic made anew?")
        if offset < first[it]:
            tasks.data_loss(settings, f"{root} has {it} up to {offset}, and the log begins at {first[it]}")
            start[it] = first[it]
    if all(start[it] == target[it] for it in target):
        return None, target
    number = before[-1].number + 1 if before else 1
    return Run(number, topic, topic_id, start, limited(start, target, most), 0, 0), target


def _check_same_topic(root: Path, before: Run, topic: str, topic_id: str) -> None:
    if before.topic != topic:
        raise LoadError(
            f"{root} holds the topic {before.topic!r}, not {topic!r}: load each topic into its own directory"
        )
    if before.topic_id != topic_id:
        raise LoadError(
            f"{root} holds another topic of the name {topic!r}, which was deleted: load into a new directory"
        )


def _written(spark: SparkSession, root: Path, planned: Run, given: Mapping[str, str]) -> Run:
    """All of the run's files, in a place where nobody looks."""
    import pyarrow.parquet as pq

    place = root / f"{UNCOMMITTED}{planned.number:08d}"
    positions = {
        "startingOffsets": json.dumps(to_json(planned.start)),
        "endingOffsets": json.dumps(to_json(planned.end)),
        "includeHeaders": "true",
    }
    spark.read.format("hmb").options(**{**given, **positions}).load().write.parquet(place.as_uri())
    files = sorted(place.glob("*.parquet"))
    run = planned._replace(rows=sum(pq.read_metadata(path).num_rows for path in files), files=len(files))
    (place / MANIFEST).write_text(json.dumps(run.to_json(), indent=1) + "\n")
    return run


def _commit(root: Path, run: Run) -> Run:
    """Make it seen, all at once."""
    place = root / f"{UNCOMMITTED}{run.number:08d}"
    for path in (*place.iterdir(), place):
        _sync(path)
    place.rename(root / f"{RUN}{run.number:08d}")
    _sync(root)
    return run


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """One load at a time; the lock of a process that dies is free again."""
    if root.exists() and not root.is_dir():
        raise LoadError(f"{root} is no directory")
    root.mkdir(parents=True, exist_ok=True)
    with (root / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LoadError(f"another load into {root} is running") from error
        yield
