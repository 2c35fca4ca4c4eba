"""Six Spark jobs have exact answers although a worker, the broker and the driver are killed.

The test kills the worker, the broker and the driver at most once each. The command `python -m tests.spark.kill` runs
the same experiment with 20 kills.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'hmb[spark]'")

from hmb.bench.peers import PeerUnavailable, kafka_43_jars
from hmb.spark.local.environment import SparkUnavailableError
from hmb.spark.local.sessions import check as check_spark
from tests.spark.kill import Experiment, broker_of, check

pytestmark = [pytest.mark.external, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.parametrize(
    ("kind", "kills"), [("hmb", ["worker", "broker", "driver"]), ("kafka", ["broker", "driver"])], ids=["hmb", "kafka"]
)
def test_the_answers_of_six_jobs_equal_those_of_plain_python(tmp_path: Path, kind: str, kills: list[str]) -> None:
    try:
        check_spark()
        if kind == "kafka":
            kafka_43_jars()
    except (SparkUnavailableError, PeerUnavailable) as missing:
        pytest.skip(str(missing))
    with broker_of(kind, tmp_path / "broker") as broker:
        experiment = Experiment(tmp_path, 3, broker)
        found = experiment.run(len(kills))
    assert experiment.killed == dict.fromkeys(kills, 1)
    check(found)
