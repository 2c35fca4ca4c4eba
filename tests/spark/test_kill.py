"""Six Spark jobs have exact answers although a worker, the broker and the driver are killed.

`python -m tests.spark.kill` kills more often.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'hmb[spark]'")

from hmb.bench.peers import Hmb
from hmb.spark.local.environment import SparkUnavailableError
from hmb.spark.local.sessions import check as check_spark
from tests.spark.kill import Experiment, check

pytestmark = [pytest.mark.external, pytest.mark.slow, pytest.mark.timeout(1800)]


def test_the_answers_of_six_jobs_equal_those_of_plain_python(tmp_path: Path) -> None:
    try:
        check_spark()
    except SparkUnavailableError as missing:
        pytest.skip(str(missing))
    with Hmb(tmp_path / "broker") as broker:
        experiment = Experiment(tmp_path, 3, broker)
        found = experiment.run(3)
    assert experiment.killed == {"worker": 1, "broker": 1, "driver": 1}
    check(found)
