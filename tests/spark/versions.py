"""Try the data source with several versions of PySpark, and print the results as a table.

The page docs/spark/index.md contains the results of this program.

Usage: python -m tests.spark.versions [FOLDER [VERSION ...]]

For each version, the program creates a Python environment in FOLDER, and installs PySpark there. The other packages
come from the Python that runs the program. A version that is already in FOLDER is not installed again.

For each version, the program also starts a new Python process that uses this version of PySpark. The new process starts
a broker and a Spark session with one core, and tests each feature of the data source.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERSIONS = ("4.3.0", "4.2.1", "4.1.4", "4.0.5")
ROOT = Path(__file__).parents[2]
RECORDS = 20
# On a busy machine, Spark can give up waiting for a Python worker. The program then tests the feature again.
BUSY, TRIES = "Python worker failed to connect back", 3


class Features:
    """The tests of the data source's features.

    Each public method tests one feature. The printed table has one column for each feature.
    """

    def __init__(self, spark: SparkSession, servers: str, folder: Path) -> None:
        self._spark = spark
        self._broker = {"kafka.bootstrap.servers": servers}
        self._folder = folder

    def batch_reading(self) -> bool:
        return self._read().count() == RECORDS

    def batch_writing(self) -> bool:
        rows = self._spark.range(3).selectExpr("CAST(id AS STRING) AS value")
        rows.write.format("hmb").options(**self._broker, topic="written").mode("append").save()
        return self._read("written").count() == 3

    def filters(self) -> bool:
        """Return whether a filter on offsets saves one task, and the query still reads all matching records.

        Without the filter, the query has two tasks. Each task reads one half of the topic. The filter excludes the
        first half, so one task is enough.
        """
        half = RECORDS // 2
        found = self._read(pushFilters="true", maxRecordsPerPartition=str(half)).where(f"offset >= {half}")
        return found.rdd.getNumPartitions() == 1 and found.count() == half

    def rate_limits_and_AvailableNow(self) -> bool:
        return self._stream("limited", maxOffsetsPerTrigger=str(RECORDS // 4)) == [RECORDS // 4] * 4

    def exactly_once(self) -> bool:
        return self._stream("once", exactlyOnce="true") == [RECORDS] and self._read("once").count() == RECORDS

    def lag(self) -> bool:
        import hmb.spark

        self._stream("lagging")
        return hmb.spark.lag(self._last) == (0, 0.0, 0, 0)

    def _read(self, topic: str = "numbers", **options: str) -> DataFrame:
        return self._spark.read.format("hmb").options(**self._broker, subscribe=topic, **options).load()

    def _stream(self, topic: str, exactlyOnce: str = "false", **options: str) -> list[int]:
        """Copy the topic `numbers` to `topic`. Return the number of records that each trigger reads."""
        stream = self._spark.readStream.format("hmb").options(
            **self._broker, subscribe="numbers", startingOffsets="earliest", **options
        )
        writer = stream.load().selectExpr("value").writeStream.format("hmb")
        writer = writer.options(**self._broker, topic=topic, exactlyOnce=exactlyOnce)
        query = writer.option("checkpointLocation", str(self._folder / topic)).trigger(availableNow=True).start()
        query.awaitTermination(120)
        self._last = query.lastProgress
        return [each.numInputRows for each in query.recentProgress if each.numInputRows]


COLUMNS = [name for name in vars(Features) if not name.startswith("_")]


def try_all() -> None:
    """Test each feature of the data source with the PySpark of this process.

    For each feature, print one line with its name and the result: "yes", or the reason for the failure.
    """
    import hmb
    import hmb.spark
    from hmb.spark.local.environment import SparkUnavailableError

    with hmb.Broker(config={"num.partitions": "1"}) as broker, tempfile.TemporaryDirectory() as folder:
        with hmb.Producer(broker.bootstrap_servers) as producer:
            for number in range(RECORDS):
                producer.send("numbers", b"%d" % number)
        try:
            spark = hmb.spark.session("versions", "local[1]", {"spark.driver.memory": "1g"})
        except SparkUnavailableError as error:
            print(f"session: {error}")
            return
        try:
            features = Features(spark, broker.bootstrap_servers, Path(folder))
            for name in COLUMNS:
                print(f"{name}: {_outcome(getattr(features, name))}", flush=True)
        finally:
            spark.stop()


def _outcome(feature: Callable[[], bool]) -> str:
    for left in reversed(range(TRIES)):
        try:
            return "yes" if feature() else "no, the result is wrong"
        except Exception as error:  # noqa: BLE001 - the table shows each error
            lines = [line for line in str(error).splitlines() if line.strip()]
            if left == 0 or BUSY not in str(error):
                return f"no: {type(error).__name__}: {lines[0] if lines else ''}"
    raise AssertionError("unreachable, because the last attempt always returns")


def python_with(version: str, folder: Path) -> Path:
    """Return a Python with this version of PySpark. It shares all other packages with the Python that runs here."""
    home = folder / version
    python = home / "bin" / "python"
    if any(home.glob("lib/*/site-packages/pyspark/version.py")):
        return python
    venv.create(home, with_pip=True)
    install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*install, "--no-deps", f"pyspark=={version}", "py4j==0.10.9.9"], check=True)
    packages = next(home.glob("lib/*/site-packages"))
    others = [each for each in sys.path if each.endswith("site-packages")]
    (packages / "others.pth").write_text("\n".join(others))
    return python


def main(folder: Path, versions: list[str]) -> None:
    head = ["PySpark", *(name.replace("_", " ") for name in COLUMNS)]
    print("| " + " | ".join(head) + " |\n" + "| --- " * len(head) + "|", flush=True)
    for version in versions:
        command = [str(python_with(version, folder)), "-m", "tests.spark.versions", "--try"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
        found = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
        if not found:
            raise SystemExit(f"{version}: {done.stderr[-3000:]}")
        cells = [found.get(name, "no") for name in COLUMNS]
        print(f"| {version} | " + " | ".join(cells) + " |", flush=True)
        if "session" in found:
            print(f"\nPySpark {version}: {found['session']}\n", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--try"]:
        try_all()
    elif len(sys.argv) > 1:
        main(Path(sys.argv[1]), sys.argv[2:] or list(VERSIONS))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary), list(VERSIONS))
