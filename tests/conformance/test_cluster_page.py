"""The page "From one machine to a cluster" shows the real output of its commands with Apache Kafka 4.3.0."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.cluster_page import PAGE, comparable, run

pytestmark = [pytest.mark.external, pytest.mark.slow]


@pytest.mark.timeout(600)
def test_the_commands_of_the_page_print_its_output(kafka_43: Path) -> None:
    pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")
    steps = list(run(PAGE.read_text(), kafka_43))
    assert len(steps) >= 8
    for step in steps:
        assert comparable(step.output) == comparable(step.expected), step.command
