"""Tests that streaming queries survive a kill of each kind of process: the driver, a worker, the broker.

`python -m tests.spark.kill` kills more often.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'hmb[spark]'")

from hmb.spark.local.environment import SparkUnavailableError
from hmb.spark.local.sessions import check as check_spark
from tests.spark.kill import Experiment, check


@pytest.mark.external
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_outputs_equal_the_batch_answer(tmp_path: Path) -> None:
    try:
        check_spark()
    except SparkUnavailableError as missing:
        pytest.skip(str(missing))
    experiment = Experiment(tmp_path, random.Random(3))
    found = experiment.run(3)
    assert experiment.killed == {"driver": 1, "worker": 1, "broker": 1}
    assert found["once"]["rows"] == found["topic"]["rows"] > 0
    check(found)
