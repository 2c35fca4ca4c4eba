"""The page "From one machine to a cluster" shows the real output of its commands with Apache Kafka 4.3.0 and Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from hmb.spark.local.environment import findings
from tests.conformance.cluster_page import PAGE, SPARK_STEPS, comparable, run

pytestmark = [pytest.mark.external, pytest.mark.slow]


@pytest.mark.timeout(900)
def test_the_commands_of_the_page_print_its_output(kafka_43: Path) -> None:
    pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")
    page = PAGE.read_text()
    first_steps, found, _ = page.partition(SPARK_STEPS)
    assert found
    has_spark = not any(finding.problem for finding in findings())
    steps = list(run(page if has_spark else first_steps, kafka_43))
    assert len(steps) >= 8
    for step in steps:
        assert comparable(step.output) == comparable(step.expected), step.command
