"""Runs some comparisons of `same_bytes`: HMB and Kafka receive the same requests, and the responses are compared.

The command `python -m tests.conformance.same_bytes` runs all comparisons.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages import api_name
from hmb.protocol.messages.metadata import MetadataResponse
from tests.conformance.same_bytes.comparing import Difference, Normalizer, differences
from tests.conformance.same_bytes.comparisons import COMPARISONS, sample
from tests.conformance.same_bytes.explained import NOT_SERVED
from tests.conformance.same_bytes.running import Result, Verdict, no_longer_needed, run_all

APIS = sorted({api_name(comparison.case.key()) for comparison in COMPARISONS})
SECONDS = 300  # the time limit for the start of Kafka and all comparisons on a busy machine
TopicAnswer = MetadataResponse.MetadataResponseTopic


@dataclass
class Run:
    results: list[Result]
    log: str  # the log of HMB's process


@pytest.fixture(scope="module")
def outcome() -> Run:
    return Run(*run_all([each for each in sample() if each.case.user is None]))


@pytest.fixture(scope="module")
def outcome_with_acls() -> Run:
    return Run(*run_all([each for each in sample() if each.case.user is not None]))


def unexplained(outcome: Run, api: str) -> list[str]:
    of_api = [result for result in outcome.results if result.comparison.name.startswith(f"{api}/")]
    return [f"{each.comparison.name}: {difference}" for each in of_api for difference in each.unexplained]


@pytest.mark.external
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("api", APIS)
def test_every_difference_has_a_listed_reason(outcome: Run, api: str) -> None:
    assert unexplained(outcome, api) == []


@pytest.mark.external
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("api", APIS)
def test_every_difference_of_brokers_with_acls_has_a_listed_reason(outcome_with_acls: Run, api: str) -> None:
    assert unexplained(outcome_with_acls, api) == []


@pytest.mark.external
@pytest.mark.timeout(SECONDS)
def test_every_listed_reason_explains_a_difference(outcome: Run, outcome_with_acls: Run) -> None:
    assert no_longer_needed(outcome.results + outcome_with_acls.results) == []


@pytest.mark.external
@pytest.mark.timeout(SECONDS)
def test_no_further_api_is_left_out(outcome: Run) -> None:
    """HMB serves every API that is compared, except for those in `explained.NOT_SERVED`."""
    missing = (each.comparison for each in outcome.results if each.verdict is Verdict.NOT_SERVED)
    assert {api_name(comparison.case.key()) for comparison in missing} == NOT_SERVED


@pytest.mark.external
@pytest.mark.timeout(SECONDS)
def test_no_request_makes_hmb_fail(outcome: Run, outcome_with_acls: Run) -> None:
    """No compared request makes a handler of HMB fail.

    If a handler fails, HMB closes the connection, as it does for a refused request. Only HMB's log shows the
    difference.
    """
    assert "Traceback" not in outcome.log + outcome_with_acls.log


def test_names_of_comparisons_are_unique() -> None:
    assert [name for name, count in Counter(each.name for each in COMPARISONS).items() if count > 1] == []
    assert len({each.unique_name for each in COMPARISONS}) == len(COMPARISONS)


def compare(ours: object, kafka: object, ignored: tuple[str, ...] = ()) -> list[Difference]:
    trees = [Normalizer({}, ("controller_id",), ignored).tree(answer) for answer in (ours, kafka)]
    return list(differences(*trees))


def test_the_order_of_items_is_not_a_difference() -> None:
    one, two = TopicAnswer(name="one"), TopicAnswer(name="two")
    assert compare(MetadataResponse(topics=[one, two]), MetadataResponse(topics=[two, one])) == []


def test_a_difference_names_its_field() -> None:
    bad = TopicAnswer(name="one", error_code=ErrorCode.INVALID_REQUEST)
    (found,) = compare(MetadataResponse(topics=[bad]), MetadataResponse(topics=[TopicAnswer(name="one")]))
    assert str(found) == "topics.one.error_code: INVALID_REQUEST, Kafka: NONE"
    both = MetadataResponse(topics=[TopicAnswer(name="one"), TopicAnswer(name="two")])
    (missing,) = compare(both, MetadataResponse(topics=[TopicAnswer(name="two")]))
    assert (missing.path, missing.kafka) == ("topics.one", "(absent)")


def test_different_ids_are_equal_but_a_missing_id_is_a_difference() -> None:
    assert compare(MetadataResponse(cluster_id="a"), MetadataResponse(cluster_id="b")) == []
    assert [each.path for each in compare(MetadataResponse(cluster_id="a"), MetadataResponse())] == ["cluster_id"]
    assert compare(MetadataResponse(controller_id=1), MetadataResponse(controller_id=2)) == []
    assert compare(MetadataResponse(cluster_id="a"), MetadataResponse(), ignored=("cluster_id",)) == []


def test_different_words_in_messages_are_a_separate_kind_of_difference() -> None:
    assert Difference("topics.one.error_message", "no such topic", "None").is_text
    assert not Difference("topics.one.error_message", "None", "no such topic").is_text
    assert not Difference("topics.one.error_code", "NONE", "INVALID_REQUEST").is_text
