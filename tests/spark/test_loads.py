"""Tests that load a topic into Parquet files. All runs together load each record once, even if a run crashes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import hmb
import hmb.spark
from hmb.cli.main import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.external, pytest.mark.timeout(300)]
pytest.importorskip("pyspark")
dataset = pytest.importorskip("pyarrow.dataset")

from hmb.spark import loads  # noqa: E402
from hmb.spark.loads import LoadError  # noqa: E402
from hmb.spark.tasks import DataLossError  # noqa: E402


class Crash(BaseException):
    """An exception that no code catches. It simulates the death of the process."""


def fill(servers: str, topic: str, first: int, end: int) -> None:
    with hmb.Producer(servers) as producer:
        for number in range(first, end):
            producer.send(topic, b"%d" % number, partition=number % 3, headers=[("h", b"x")])


def loaded(directory: Path) -> list[int]:
    """Return all values in the files, sorted. This reader ignores the manifests."""
    return sorted(map(int, dataset.dataset(directory, partitioning="hive").to_table().column("value").to_pylist()))


def crash(*arguments: object, **more: object) -> None:
    raise Crash


def test_each_load_reads_the_new_records(spark: SparkSession, servers: str, topic: str, tmp_path: Path) -> None:
    fill(servers, topic, 0, 30)
    (run,) = hmb.spark.load(topic, tmp_path, servers, spark=spark)
    assert (run.number, run.rows, sorted(run.end.values())) == (1, 30, [10, 10, 10])
    assert hmb.spark.load(topic, tmp_path, servers, spark=spark) == []
    fill(servers, topic, 30, 36)
    (run,) = hmb.spark.load(topic, tmp_path, servers, spark=spark)
    assert (run.number, run.rows, sorted(run.start.values())) == (2, 6, [10, 10, 10])
    assert loaded(tmp_path) == list(range(36))
    assert loads.runs(tmp_path)[1] == run
    frame = spark.read.parquet(str(tmp_path))
    assert {row.run: row.rows for row in frame.groupBy("run").agg({"*": "count"}).toDF("run", "rows").collect()} == {
        1: 30,
        2: 6,
    }
    assert frame.first().headers[0].asDict() == {"key": "h", "value": b"x"}


@pytest.mark.parametrize("step", ["planned", "written", "manifest", "synced", "renamed", "reported"])
def test_a_crash(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    fill(servers, topic, 0, 12)
    hmb.spark.load(topic, tmp_path, servers, spark=spark)
    fill(servers, topic, 12, 24)
    with monkeypatch.context() as patches:
        if step == "planned":
            patches.setattr(loads, "_write", crash)
        elif step == "written":
            patches.setattr("pyarrow.parquet.read_metadata", crash)
        elif step == "manifest":
            patches.setattr(loads, "_commit", crash)
        elif step == "synced":
            patches.setattr(Path, "rename", crash)
        elif step == "renamed":
            sync = loads._sync
            patches.setattr(loads, "_sync", lambda path: crash() if path == tmp_path else sync(path))
        with pytest.raises(Crash):
            hmb.spark.load(topic, tmp_path, servers, spark=spark, on_commit=crash)
    assert loaded(tmp_path) == list(range(24 if step in ("renamed", "reported") else 12))
    fill(servers, topic, 24, 27)
    hmb.spark.load(topic, tmp_path, servers, spark=spark)
    assert loaded(tmp_path) == list(range(27))
    assert not list(tmp_path.glob("_tmp-*"))


@pytest.mark.parametrize(
    "name", ["dt=2026-01-01", "with space", "Wörter,{a}", "100%25 #1?", "a:b [1]*"], ids=map(str, range(5))
)
def test_names_of_directories(spark: SparkSession, servers: str, topic: str, tmp_path: Path, name: str) -> None:
    """A load writes to the directory with exactly the given name.

    Before a bug was fixed, Spark wrote to another directory if the name contained a character that URIs encode.
    """
    fill(servers, topic, 0, 3)
    hmb.spark.load(topic, tmp_path / name / "t", servers, spark=spark)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    (run,) = loads.runs(tmp_path / name / "t")
    assert (run.rows, run.files > 0) == (3, True)
    assert loaded(tmp_path / name / "t") == [0, 1, 2]


def test_a_uri_of_a_file_is_a_path(spark: SparkSession, servers: str, topic: str, tmp_path: Path) -> None:
    fill(servers, topic, 0, 3)
    hmb.spark.load(topic, f"file://{tmp_path}/a%20b", servers, spark=spark)
    assert loaded(tmp_path / "a%20b") == [0, 1, 2], "as in Hadoop, the code %20 is not decoded"
    assert len(loads.runs(f"file:{tmp_path}/a%20b")) == 1


@pytest.mark.parametrize(
    "directory", ["hdfs://host:8020/data", "s3a://bucket/data", "abfss://c@account/data"], ids=["hdfs", "s3a", "abfss"]
)
def test_other_file_systems_are_refused(servers: str, topic: str, tmp_path: Path, directory: str) -> None:
    """A load refuses a path on another file system, such as `hdfs:`.

    Before a bug was fixed, the load wrote its manifest to a local folder with the name `hdfs:`.
    """
    code, line = mistaken(topic, directory, "-b", servers)
    scheme = directory.partition(":")[0]
    assert (code, f"cannot lock and rename a folder in the file system {scheme!r}; load into" in line) == (1, True)
    assert not Path(f"{scheme}:").exists()


KILLED = """
import os, signal, sys, hmb.spark
from hmb.spark import loads
def die(spark, root, planned, given, write=loads._write):
    run = write(spark, root, planned, given)
    if run.number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return run
loads._write = die
hmb.spark.load(*sys.argv[1:4], records_per_run=12)
"""


@pytest.mark.slow
def test_kill_9(spark: SparkSession, servers: str, topic: str, tmp_path: Path) -> None:
    fill(servers, topic, 0, 30)
    process = subprocess.run([sys.executable, "-c", KILLED, topic, str(tmp_path), servers], check=False, timeout=250)
    assert process.returncode == -signal.SIGKILL
    assert loaded(tmp_path) == sorted(map(int, _values(loads.runs(tmp_path))))
    assert list(tmp_path.glob("_tmp-*"))
    made = hmb.spark.load(topic, tmp_path, servers, spark=spark)
    assert [run.number for run in made] == [2]
    assert loaded(tmp_path) == list(range(30))


def _values(runs: list[loads.LoadRun]) -> list[int]:
    """Return the values of the records that these runs have loaded.

    The function `fill` sends the number n to partition n % 3. For example, offset 4 of partition 2 contains the value
    3 * 4 + 2 = 14.
    """
    return [3 * offset + it.partition for run in runs for it in run.end for offset in range(run.start[it], run.end[it])]


def test_one_load_at_a_time(spark: SparkSession, servers: str, topic: str, tmp_path: Path) -> None:
    with (
        loads._locked(tmp_path),
        pytest.raises(LoadError, match=r"another load into .* is running"),
    ):
        hmb.spark.load(topic, tmp_path, servers, spark=spark)


def test_another_topic_is_refused(spark: SparkSession, servers: str, topic: str, tmp_path: Path) -> None:
    fill(servers, topic, 0, 3)
    hmb.spark.load(topic, tmp_path, servers, spark=spark)
    fill(servers, "other", 0, 3)
    with pytest.raises(LoadError, match="load each topic into its own directory"):
        hmb.spark.load("other", tmp_path, servers, spark=spark)
    with hmb.Admin(servers) as admin:
        admin.delete_topics([topic])
    fill(servers, topic, 0, 30)
    with pytest.raises(LoadError, match="contains records of the deleted topic"):
        hmb.spark.load(topic, tmp_path, servers, spark=spark)


def test_records_that_retention_has_deleted(spark: SparkSession, servers: str, topic: str, tmp_path: Path) -> None:
    fill(servers, topic, 0, 3)
    hmb.spark.load(topic, tmp_path, servers, spark=spark)
    fill(servers, topic, 3, 30)
    with hmb.Admin(servers) as admin:
        admin.delete_records({hmb.TopicPartition(topic, 0): 4})
    with pytest.raises(DataLossError, match=rf"holds {topic}-0 up to offset 1, but the log starts at 4"):
        hmb.spark.load(topic, tmp_path, servers, spark=spark)
    hmb.spark.load(topic, tmp_path, servers, spark=spark, options={"failOnDataLoss": "false"})
    assert loaded(tmp_path) == [number for number in range(30) if number not in (3, 6, 9)]


def test_the_command(spark: SparkSession, servers: str, topic: str, tmp_path: Path) -> None:
    """The command uses a Spark session that already runs. In this test, the fixture `spark` has started the session."""

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(main, ["spark", "load", *arguments, "-b", servers])

    fill(servers, topic, 0, 30)
    result = run(topic, str(tmp_path), "--records", "20")
    assert (result.exit_code, result.stdout) == (0, f"loaded 30 records of {topic} into {tmp_path}\n")
    assert result.stderr.splitlines()[1].startswith("run 2: ")
    result = run(topic, str(tmp_path), "--json")
    assert json.loads(result.stdout) == {"topic": topic, "directory": str(tmp_path), "runs": []}
    result = run(topic, str(tmp_path / "other"), "--option", "startingOfset=1")
    assert result.exit_code == 1
    assert "because `load` selects the records and always reads the headers" in result.stderr


def mistaken(*arguments: str) -> tuple[int, str]:
    """Run `hmb spark load` with arguments that contain a user's mistake.

    Return the exit code, and the one line that the command writes to stderr. The command starts no Spark session.
    """
    result = CliRunner().invoke(main, ["spark", "load", *arguments])
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return result.exit_code, line


def test_a_missing_topic(servers: str, tmp_path: Path) -> None:
    code, line = mistaken("nowhere", str(tmp_path / "new"), "-b", servers)
    assert (code, line.partition(";")[0]) == (3, "hmb: there is no topic 'nowhere'")
    assert not (tmp_path / "new").exists()


def test_no_broker(tmp_path: Path) -> None:
    code, line = mistaken("t", str(tmp_path), "-b", "127.0.0.1:1")
    assert (code, "127.0.0.1:1" in line, "start a broker" in line) == (4, True, True)


def test_directories_that_cannot_be_written(servers: str, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    assert mistaken(topic, str(file), "-b", servers) == (1, f"hmb: {file} is not a directory")
    code, line = mistaken(topic, str(file / "below"), "-b", servers)
    assert (code, line) == (1, f"hmb: {file / 'below'}: Not a directory")
    closed = Path("/proc/hmb")  # Even the root user cannot create a folder in /proc.
    assert mistaken(topic, str(closed), "-b", servers)[1].startswith(f"hmb: {closed}: ")
    assert file.read_text() == "mine"


@pytest.mark.parametrize("option", ["startingTimestamp", "endingoffsets", "subscribePattern", "columns"])
def test_options_cannot_choose_what_a_load_reads(servers: str, topic: str, tmp_path: Path, option: str) -> None:
    """A load refuses options that choose offsets.

    Before a bug was fixed, the option startingTimestamp replaced the offsets of the load, and the manifest listed
    records that were not loaded.
    """
    code, line = mistaken(topic, str(tmp_path), "-b", servers, "--option", f"{option}=1")
    assert (code, line.partition(":")[2].strip().partition(" cannot")[0]) == (1, f"option {option!r}")


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"number": 1}'], ids=range(5))
def test_a_manifest_that_is_damaged(servers: str, topic: str, tmp_path: Path, text: str | None) -> None:
    manifest = tmp_path / "run=00000001" / "_manifest.json"
    manifest.parent.mkdir()
    if text is not None:
        manifest.write_text(text)
    code, line = mistaken(topic, str(tmp_path), "-b", servers)
    assert code == 1 and line.startswith(f"hmb: {manifest} does not contain the offsets of its folder")


# The module `sitecustomize` of a Python worker that prints a traceback. `sys.orig_argv` is the whole command line. Its
# last argument names the kind of the worker, here a worker for Spark's tasks.
PRINTING_WORKER = """
import pathlib, sys
if "pyspark.daemon" in sys.orig_argv and sys.orig_argv[-1] == "pyspark.worker":
    print("Traceback (most recent call last):\\nBrokenPipeError: [Errno 32] Broken pipe", file=sys.stderr, flush=True)
    pathlib.Path({printed!r}).touch()
"""


@pytest.mark.slow
def test_a_disk_that_is_full(servers: str, topic: str, tmp_path: Path) -> None:
    """A load onto a full disk ends with an error message of one line.

    Before a bug was fixed, the command printed a hundred lines of Java's error messages. The test does not fill a disk.
    Instead, it limits the size of files.

    The command must also hide the output of Spark's Python workers. To check this, the test adds a module
    `sitecustomize`. Each worker imports this module when it starts, and the module prints a traceback.
    """
    (tmp_path / "sitecustomize.py").write_text(PRINTING_WORKER.format(printed=str(tmp_path / "printed")))
    with hmb.Producer(servers) as producer:
        producer.send_many(topic, [random.Random(number).randbytes(1000) for number in range(4000)])
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000)); "
    program = f"{limit}from hmb.cli.entry import run; run()"
    command = [sys.executable, "-c", program, "spark", "load", topic, str(tmp_path / "t"), "-b", servers]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=250)
    assert (tmp_path / "printed").exists()
    lines = [line for line in done.stderr.splitlines() if not line.startswith("WARNING: Using incubator")]
    assert (done.returncode, lines) == (
        1,
        [f"hmb: Spark cannot load {topic} into {tmp_path / 't'}: IOException: File too large"],
    )


def test_ctrl_c_during_a_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ctrl-C during a load prints no traceback.

    Before a bug was fixed, PySpark printed pages of tracebacks when it ended.
    """
    enough = threading.Event()

    def busy(*arguments: object, **more: object) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        enough.wait(60)

    monkeypatch.setattr(loads, "load", busy)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = CliRunner().invoke(main, ["spark", "load", "t", str(tmp_path)])
    finally:
        signal.signal(signal.SIGINT, before)
        enough.set()
    assert (result.exit_code, result.output) == (130, "")
