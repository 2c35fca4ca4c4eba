"""Fixtures: one Spark session and one broker for all tests of a run.

If Spark cannot run, pytest skips the tests that use the Spark session. The skip message names the problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import hmb
from hmb.client.admin import NewTopic, raised
from hmb.spark.local.environment import findings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    missing = [finding.problem for finding in findings() if finding.problem]
    if missing:
        pytest.skip(f"no Spark: {missing[0]}")
    import hmb.spark

    session = hmb.spark.session("tests", "local[2]", {"spark.driver.memory": "1g"})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    with hmb.Broker(config={"num.partitions": "3", "log.flush.acks.all": "false"}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic(servers: str, request: pytest.FixtureRequest) -> str:
    """Create a topic for one test, and return the topic's name.

    The topic has three partitions. If the test's module defines the constant `PARTITIONS`, the topic has that number
    of partitions.
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name).strip("-")[-200:]
    with hmb.Admin(servers) as admin:
        raised(admin.create_topics([NewTopic(name, getattr(request.module, "PARTITIONS", 3))])[name])
    return str(name)
