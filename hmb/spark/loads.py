"""Load a topic's records into Parquet files, each record exactly once.

Problem: a job that loads a topic writes the records to files. The job must also store the offsets up to which it has
loaded records, so that its next run continues at these offsets. If the job stores records and offsets in two systems, a
crash can happen between the two writes. The job then loses records or loads them twice.

Idea: store records and offsets together, so that one commit stores both. Kafka 0.7 loaded data into Hadoop in this way.
"This solves a distributed consensus problem, by removing the distributed part" (Kafka 0.7 design, "Consumer state"). In
HMB, a load stores records and offsets in one directory DIR, and a commit renames one folder in DIR:
    DIR/run=00000001/part-*.parquet     the records of one range of offsets in each partition
    DIR/run=00000001/_manifest.json     these ranges, and the number of rows
    DIR/run=00000002/...
    DIR/_tmp-00000003/...               a run that is not committed: still in progress, or ended by a crash
    DIR/_lock                           locked while a load runs

Mechanism: each call of the function `load` is a *load*. A load divides the new records into one or more *runs*.
A run contains one range of offsets for each partition. All ranges of a run together contain about
`records_per_run` offsets (by default, 10 million). The load writes each run into its own folder in DIR.

First, a load locks DIR, and deletes the folders of runs that earlier loads did not commit. The folder of each
committed run contains a *manifest*: a file with the start and end offset of the run in each partition. The load
continues at the end offsets in the newest manifest.

A load writes the records and the manifest of run 3 into the folder `DIR/_tmp-00000003`, and syncs these files
to disk. To commit the run, it renames the folder to `DIR/run=00000003`. It then syncs the directory DIR, so
that the new name survives a power cut.

Example: run 1 contains the offsets 0 to 999 of partition 0, and its manifest ends at offset 1000. Run 2 writes the
offsets 1000 to 1499 to `_tmp-00000002`, and then the machine loses power. Readers still see only run 1. The next load
deletes `_tmp-00000002` and starts at offset 1000 again. It does the same after a load that ended with an exception.

The file system renames a folder in one step. If the process dies before this step, readers see no record of the
run. If the process dies after this step, readers see all records of the run. Each record is therefore in exactly
one committed run.

DIR contains a folder of Parquet files for each committed run, for example `run=00000003`. Spark, pandas and
Arrow read these folders without special code. They add a column `run` (here 3), and ignore files and
folders whose names start with `_`. With Spark, this line reads all runs:
    spark.read.parquet(DIR)

The function `load` writes all columns of the data source, including `headers`, to Parquet files. If retention
deletes a record before `load` has read the record, `load` fails. With failOnDataLoss=false, `load` logs a
warning and continues without the record.

Limits: DIR is a directory of this machine, such as `/data/weather` or `file:///data/weather`. A load refuses all other
URIs, such as `hdfs://...` and `s3a://...`, for two reasons. First, a load locks DIR, and this lock works on one machine
only. Second, a load commits by renaming a folder in one step, and an object store such as S3 cannot do this.

The driver and the workers of Spark write to the same directory DIR. If the workers run on other machines, DIR must
therefore be in a file system that all these machines share.

Source: Kafka 0.7 design, "Consumer state".
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hmb.client.metadata import Cluster
from hmb.defaults import DEFAULT_SERVER
from hmb.spark.local.sessions import check, session
from hmb.spark.offsets import Offsets, ends, from_json, partitions_of, to_json
from hmb.spark.option_names import DEFAULT_NAME
from hmb.spark.options import OptionError, source_options
from hmb.spark.ranges import limited

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN, UNCOMMITTED, MANIFEST, LOCK = "run=", "_tmp-", "_manifest.json", "_lock"
# Refuse options with these prefixes, because `load` chooses the brokers, topic, offsets and columns.
CHOSEN = ("assign", "subscribe", "starting", "ending", "columns", "kafka.bootstrap.")
RECORDS_PER_RUN = 10_000_000
# The part before the colon has at least two characters, so "a:/data" is a path, not a URI. One slash after the colon is
# enough, because the class Path shortens "file:///data" to "file:/data".
URI = re.compile(r"([a-z][a-z0-9+.-]+):/(?://)?(.*)", re.IGNORECASE | re.DOTALL)


class LoadError(Exception):
    """A load cannot continue. The message contains the reason and what to do."""


class LoadRun(NamedTuple):
    """One run of a load. For each partition, it contains the records from offset `start` to offset `end` - 1."""

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
    def from_json(cls, text: str) -> LoadRun:
        fields = json.loads(text)
        return cls(**{**fields, "start": from_json(fields["start"]), "end": from_json(fields["end"])})


def load(
    topic: str,
    directory: str | Path,
    bootstrap_servers: str = DEFAULT_SERVER,
    *,
    options: Mapping[str, str] | None = None,
    records_per_run: int = RECORDS_PER_RUN,
    spark: SparkSession | None = None,
    on_commit: Callable[[LoadRun, int], object] = lambda run, remaining: None,
) -> list[LoadRun]:
    """Load the records that are in the topic now, but not yet in `directory`. Return the new runs.

    A *run* is a folder of Parquet files with one range of offsets of each partition. The ranges of a run
    contain about `records_per_run` offsets in total. They can contain a few more, because each partition with
    unread offsets gets at least one offset.

    The function writes and commits one run after another. After each commit, it calls
    `on_commit(run, remaining)`. The number `remaining` counts the offsets that are not loaded yet.

    `options` contains further options of the data source.

    Raises LoadError, SparkUnavailableError, DataLossError, KafkaError, ConnectionFailed, OptionError.
    """
    if spark is None:
        check()
    _check_options(options or {})
    root = root_of(directory)
    given = {**(options or {}), "kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic}
    commits: list[LoadRun] = []
    security = source_options(given, streaming=False).security
    with closing(Cluster(bootstrap_servers, DEFAULT_NAME, security=security)) as cluster, ExitStack() as stack:
        cluster.topic(topic)  # Raises KafkaError if the topic does not exist, before `load` creates the directory.
        stack.enter_context(_locked(root))
        delete_uncommitted(root)
        target = None  # The first plan sets the target. Records that arrive later belong to the next load.
        while True:
            planned, target = _plan(cluster, topic, root, given, records_per_run, target)
            if planned is None:
                return commits
            spark = spark or _session(topic)
            commits.append(_commit(root, _write(spark, root, planned, given)))
            on_commit(commits[-1], sum(target[it] - commits[-1].end[it] for it in target))


def _session(topic: str) -> SparkSession:
    """Start a Spark session that prints nothing. Spark need not print errors, because `load` raises them."""
    spark = session(f"hmb load {topic}")
    spark.sparkContext.setLogLevel("OFF")
    # If a task fails, its Python worker can write a traceback. Java copies the traceback to its own standard error,
    # even if the log level is OFF. So the next lines discard Java's standard error.
    gateway = spark.sparkContext._gateway
    assert gateway is not None, "a session with a SparkContext has a connection to Java"
    java = gateway.jvm.java
    java.lang.System.setErr(java.io.PrintStream(java.io.OutputStream.nullOutputStream()))
    return spark


def root_of(directory: str | Path) -> Path:
    """Return the absolute path of `directory`, which is a path or a `file:` URI such as `file:///data`.

    As in Hadoop, codes such as `%20` in a URI are not decoded. Raises LoadError for a URI of another file system, such
    as `hdfs://...`.
    """
    uri = URI.fullmatch(str(directory))
    if uri is None:
        return Path(directory).absolute()
    if uri[1].lower() == "file":
        return Path("/", uri[2])
    fix = "load into a directory of this machine, or use a streaming query with a checkpoint"
    raise LoadError(f"{directory}: a load cannot lock and rename a folder in the file system {uri[1]!r}; {fix}")


def runs(directory: str | Path) -> list[LoadRun]:
    """Return the runs that were committed to a directory, from the oldest to the newest."""
    return [_run_of(path / MANIFEST) for path in sorted(root_of(directory).glob(f"{RUN}*"))]


def _run_of(manifest: Path) -> LoadRun:
    try:
        return LoadRun.from_json(manifest.read_text())
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        problem = f"{manifest} does not contain the offsets of its folder: {type(error).__name__}: {error}"
        raise LoadError(f"{problem}; was the folder changed by hand? Load into a new directory") from error


def _check_options(options: Mapping[str, str]) -> None:
    """Raise OptionError if `options` contains an option that `load` sets itself, such as `startingOffsets`."""
    for name in options:
        if name.lower().startswith(CHOSEN) or name.lower() == "includeheaders":
            raise OptionError(
                f"option {name!r} cannot be set, because `load` selects the records and always reads the headers"
            )


def delete_uncommitted(root: Path) -> None:
    """Delete the folders of runs that were not committed."""
    for path in root.glob(f"{UNCOMMITTED}*"):
        shutil.rmtree(path)


def _plan(
    cluster: Cluster, topic: str, root: Path, given: Mapping[str, str], most: int, target: Offsets | None
) -> tuple[LoadRun | None, Offsets]:
    """Return the next run that `load` must write, and the end offset of the load in each partition.

    A run is a range of offsets in each partition. Its fields `rows` and `files` are 0 until `_write` has
    written the run. The run is None if all records are loaded.

    The ranges of a run together contain at most `most` offsets, or a few more, because each partition with unread
    offsets gets at least one offset.

    `target` contains the end offset (exclusive) of the load in each partition. For the first run, pass None:
    the load ends at the current end of each partition. For later runs, pass the end offsets that the first call
    returned.
    """
    from hmb.spark import tasks  # `tasks` imports pyarrow: import it only after `check` has found pyarrow.
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
            problem = f"{root} holds {it} up to offset {offset}, but the log ends at {last[it]}"
            raise LoadError(f"{problem}: was the topic deleted and created again?")
        if offset < first[it]:
            tasks.data_loss(settings, f"{root} holds {it} up to offset {offset}, but the log starts at {first[it]}")
            start[it] = first[it]
    if all(start[it] == target[it] for it in target):
        return None, target
    number = before[-1].number + 1 if before else 1
    return LoadRun(number, topic, topic_id, start, limited(start, target, most), 0, 0), target


def _check_same_topic(root: Path, before: LoadRun, topic: str, topic_id: str) -> None:
    if before.topic != topic:
        raise LoadError(
            f"{root} contains the topic {before.topic!r}, not {topic!r}: load each topic into its own directory"
        )
    if before.topic_id != topic_id:
        raise LoadError(
            f"the topic {topic!r} was deleted and created again, and {root} contains records of the deleted topic: "
            "load the new topic into a new directory"
        )


def _write(spark: SparkSession, root: Path, planned: LoadRun, given: Mapping[str, str]) -> LoadRun:
    """Write the files of the run `planned` to a temporary folder.

    Return a copy of `planned` with the numbers of rows and files.
    """
    import pyarrow.parquet as pq

    folder = root / f"{UNCOMMITTED}{planned.number:08d}"
    positions = {
        "startingOffsets": json.dumps(to_json(planned.start)),
        "endingOffsets": json.dumps(to_json(planned.end)),
        "includeHeaders": "true",
    }
    # `folder.as_uri()` would write a space as %20. Spark does not change %20 back to a space, and would write to a
    # wrong directory.
    spark.read.format("hmb").options(**{**given, **positions}).load().write.parquet(f"file://{folder}")
    files = sorted(folder.glob("*.parquet"))
    run = planned._replace(rows=sum(pq.read_metadata(path).num_rows for path in files), files=len(files))
    (folder / MANIFEST).write_text(json.dumps(run.to_json(), indent=1) + "\n")
    return run


def _commit(root: Path, run: LoadRun) -> LoadRun:
    """Sync the files of a run, and rename its folder. After the rename, readers see the whole run."""
    folder = root / f"{UNCOMMITTED}{run.number:08d}"
    for path in (*folder.iterdir(), folder):
        _sync(path)
    folder.rename(root / f"{RUN}{run.number:08d}")
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
    """Lock the directory, so that only one load runs. If the process dies, the operating system releases the lock."""
    if root.exists() and not root.is_dir():
        raise LoadError(f"{root} is not a directory")
    root.mkdir(parents=True, exist_ok=True)
    with (root / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LoadError(f"another load into {root} is running") from error
        yield
