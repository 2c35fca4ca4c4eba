"""Sends a part of the requests of `same_bytes` to HMB and Kafka, and compares the responses.

The command `python -m tests.conformance.same_bytes` sends all requests of the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages import api_name
from hmb.protocol.messages.metadata import MetadataResponse
from tests.conformance.same_bytes.comparing import Difference, Normalizer, differences
from tests.conformance.same_bytes.explained import NOT_SERVED
from tests.conformance.same_bytes.fixtures import both_brokers
from tests.conformance.same_bytes.running import Result, Verdict, no_longer_needed, run
from tests.conformance.same_bytes.table import TABLE, sample

APIS = sorted({api_name(row.case.key()) for row in TABLE})
SECONDS = 300  # the time limit for the start of Kafka and for all rows, on a busy machine
TopicAnswer = MetadataResponse.MetadataResponseTopic


@dataclass
class Run:
    results: list[Result]
    log: str  # the log of HMB's process


@pytest.fixture(scope="module")
def outcome() -> Iterator[Run]:
    table = sample()
    with both_brokers(table) as (ours, kafka, hmb):
        yield Run(run(ours, kafka, table), hmb.log_path.read_text())


@pytest.mark.external
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("api", APIS)
def test_every_difference_has_its_reason(outcome: Run, api: str) -> None:
    of_api = [result for result in outcome.results if result.row.name.startswith(f"{api}/")]
    assert [f"{each.row.name}: {difference}" for each in of_api for difference in each.unexplained] == []


@pytest.mark.external
@pytest.mark.timeout(SECONDS)
def test_every_reason_has_its_difference(outcome: Run) -> None:
    assert no_longer_needed(outcome.results) == []


@pytest.mark.external
@pytest.mark.timeout(SECONDS)
def test_what_is_not_served_is_known(outcome: Run) -> None:
    """No API may be added to the list in explained.py."""
    missing = (each.row for each in outcome.results if each.verdict is Verdict.NOT_SERVED)
    assert {api_name(row.case.key()) for row in missing} == NOT_SERVED


@pytest.mark.external
@pytest.mark.timeout(SECONDS)
def test_no_request_makes_hmb_fail(outcome: Run) -> None:
    """A failed handler closes the connection, and so does a refused request. Only HMB's log shows the difference."""
    assert "Traceback" not in outcome.log


def test_names_of_rows_are_unique() -> None:
    assert [name for name, count in Counter(row.name for row in TABLE).items() if count > 1] == []
    assert len({row.own_name for row in TABLE}) == len(TABLE)


def compare(ours: object, kafka: object, ignored: tuple[str, ...] = ()) -> list[Difference]:
    trees = [Normalizer({}, ("controller_id",), ignored).tree(answer) for answer in (ours, kafka)]
    return list(differences(*trees))


def test_the_order_of_items_is_no_difference() -> None:
    one, two = TopicAnswer(name="one"), TopicAnswer(name="two")
    assert compare(MetadataResponse(topics=[one, two]), MetadataResponse(topics=[two, one])) == []


def test_a_difference_says_where_it_is() -> None:
    bad = TopicAnswer(name="one", error_code=ErrorCode.INVALID_REQUEST)
    (found,) = compare(MetadataResponse(topics=[bad]), MetadataResponse(topics=[TopicAnswer(name="one")]))
    assert str(found) == "topics.one.error_code: INVALID_REQUEST, Kafka: NONE"
    both = MetadataResponse(topics=[TopicAnswer(name="one"), TopicAnswer(name="two")])
    (missing,) = compare(both, MetadataResponse(topics=[TopicAnswer(name="two")]))
    assert (missing.path, missing.kafka) == ("topics.one", "(absent)")


def test_what_is_each_brokers_own_is_no_difference_but_that_it_is_missing_is() -> None:
    assert compare(MetadataResponse(cluster_id="a"), MetadataResponse(cluster_id="b")) == []
    assert [each.path for each in compare(MetadataResponse(cluster_id="a"), MetadataResponse())] == ["cluster_id"]
    assert compare(MetadataResponse(controller_id=1), MetadataResponse(controller_id=2)) == []
    assert compare(MetadataResponse(cluster_id="a"), MetadataResponse(), ignored=("cluster_id",)) == []


def test_other_words_are_a_difference_of_their_own() -> None:
    assert Difference("topics.one.error_message", "no such topic", "None").is_text
    assert not Difference("topics.one.error_message", "None", "no such topic").is_text
    assert not Difference("topics.one.error_code", "NONE", "INVALID_REQUEST").is_text
