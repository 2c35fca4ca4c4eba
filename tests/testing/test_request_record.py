"""Tests of the class `RequestRecord`: a test can look up the requests that its clients have sent to the broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import hmb
from hmb.broker.handlers import HANDLERS
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.testing import request_record as module
from hmb.testing.errors import NameNotFound, RequestsMissing
from tests.waiting import until

pytest_plugins = "pytester"


@pytest.fixture
def broker() -> Iterator[hmb.Broker]:
    with hmb.Broker() as broker:
        yield broker


def send(broker: hmb.Broker, *values: bytes, topic: str = "t", client_id: str = "hmb") -> None:
    with hmb.Producer(broker.bootstrap_servers, client_id=client_id) as producer:
        for value in values:
            producer.send(topic, value).result()


def test_a_record_has_the_message_the_answer_and_its_time(broker: hmb.Broker) -> None:
    broker.requests.clear()
    send(broker, b"one", client_id="writer")
    (produce,) = broker.requests.of("Produce", topic="t", client_id="writer")
    assert (produce.api, produce.topics, produce.errors, produce.closed) == ("Produce", ("t",), (), None)
    assert produce.response is not None and produce.response.responses[0].partition_responses[0].base_offset == 0  # type: ignore[attr-defined]
    assert 0 < produce.duration < 10 and produce.version >= 9
    assert broker.requests.of("produce", client_id="another") == [] == broker.requests.of("PRODUCE", topic="u")


def test_a_commit_of_a_consumer_can_be_asserted_on(broker: hmb.Broker) -> None:
    broker.produce("t", b"one", b"two")
    broker.requests.clear()
    with hmb.Consumer(broker.bootstrap_servers, "t", group="g", offset="earliest") as consumer:
        assert next(iter(consumer)).value == b"one"
        consumer.commit()
        (commit, *_) = broker.wait_for("OffsetCommit", topic="t")
    assert isinstance(commit.request, OffsetCommitRequest) and commit.request.group_id == "g"


def test_the_record_shows_what_a_fault_made_of_the_answer(broker: hmb.Broker) -> None:
    """The record of requests contains the error that a fault returned.

    The fault may be added before or after the recording begins.
    """
    broker.create_topic("t")
    for begins_first in (True, False):
        fault = broker.faults.add("PRODUCE", error="NOT_LEADER_OR_FOLLOWER", times=1) if begins_first else None
        broker.requests.clear()
        if not begins_first:
            fault = broker.faults.add("PRODUCE", error="NOT_LEADER_OR_FOLLOWER", times=1)
        send(broker, b"one")
        assert [each.errors for each in broker.requests.of("Produce")] == [("NOT_LEADER_OR_FOLLOWER",), ()]
        assert len(broker.requests.of("Produce", error="NOT_LEADER_OR_FOLLOWER")) == 1
        assert fault is not None
        broker.faults.remove(fault)
        send(broker, b"two")
        assert len(broker.requests.of("Produce")) == 3, "the record ended when the fault was removed"
        broker.requests.stop()


def test_a_connection_that_a_fault_cuts_is_recorded(broker: hmb.Broker) -> None:
    broker.create_topic("t")
    broker.requests.clear()
    with broker.faults.during("PRODUCE", cut="before", times=1):
        send(broker, b"one")
    cut, again = broker.requests.of("Produce")
    assert cut.response is None and cut.closed is not None and "cuts the connection" in cut.closed
    assert again.closed is None


def test_waiting_ends_with_the_request_of_another_thread(broker: hmb.Broker) -> None:
    broker.create_topic("t")
    broker.requests.clear()
    thread = threading.Timer(0.2, send, (broker, b"one", b"two"))
    thread.start()
    assert len(broker.wait_for("Produce", 2, timeout=30)) == 2
    thread.join()


def test_a_wait_in_vain_names_what_came_instead(broker: hmb.Broker) -> None:
    broker.requests.clear()
    send(broker, b"one")
    with pytest.raises(RequestsMissing, match=r"for 2 requests Produce topic=t: 1 came; recorded: .*1 Produce"):
        broker.wait_for("Produce", 2, topic="t", timeout=0.05)


def test_an_unknown_name_gets_the_nearest_one(broker: hmb.Broker) -> None:
    with pytest.raises(NameNotFound, match=r"no API has the name 'Prodcue'.*Produce"):
        broker.wait_for("Prodcue")
    with pytest.raises(NameNotFound, match="NOT_COORDINATOR"):
        broker.requests.of("Fetch", error="NOT_COORDINATER")


def test_a_broker_that_records_nothing_has_its_own_handlers(broker: hmb.Broker) -> None:
    assert broker.handlers == HANDLERS
    send(broker, b"one")
    assert broker.recorded_requests == [] and broker.handlers == HANDLERS
    assert len(broker.requests) == 0 and broker.handlers != HANDLERS
    broker.requests.stop()
    assert broker.handlers == HANDLERS


def test_the_record_is_bounded_and_says_so(broker: hmb.Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEPT_REQUESTS", 3)
    other = hmb.Broker()
    with other:
        other.create_topic("t")
        other.requests.clear()
        send(other, *[b"value"] * 5)
        assert len(other.requests) == 3 and other.requests.dropped >= 2
        assert {each.api for each in other.requests} == {"Produce"} and other.requests[-1].api == "Produce"


def test_the_record_goes_on_after_a_restart(broker: hmb.Broker) -> None:
    broker.create_topic("t")
    broker.requests.clear()
    broker.restart()
    send(broker, b"one")
    assert len(broker.requests.of("Produce")) == 1


def test_the_fixture_and_the_report_of_a_failed_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import hmb

        def test_one(hmb_broker, hmb_requests, hmb_topic):
            with hmb.Producer(hmb_broker.bootstrap_servers) as producer:
                producer.send(hmb_topic, b"one").result()
            assert len(hmb_requests.of("Produce")) == 1

        def test_two(hmb_broker, hmb_requests, hmb_topic):
            assert hmb_requests.of("Produce") == []
            with hmb.Producer(hmb_broker.bootstrap_servers, client_id="mine") as producer:
                producer.send(hmb_topic, b"two").result()
            assert not "this test fails"

        def test_three(hmb_broker, hmb_topic):
            before = len(hmb_broker.recorded_requests)
            with hmb.Producer(hmb_broker.bootstrap_servers) as producer:
                producer.send(hmb_topic, b"three").result()
            assert len(hmb_broker.recorded_requests) == before
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.re_match_lines([".*hmb: last requests.*", r".*Produce v\d+ from 'mine': no error after .* ms"])


def test_a_heartbeat_whose_topics_are_null_is_recorded() -> None:
    """The broker records a KIP-848 heartbeat whose list of topics is null, which means "unchanged".

    Before a bug was fixed, recording such a heartbeat failed.
    """
    with hmb.Broker() as broker:
        broker.produce("t", "a")
        requests = broker.requests
        with hmb.Consumer(broker.bootstrap_servers, "t", group="g", group_protocol="consumer") as consumer:
            until(lambda: consumer.poll(0.1), "the record")
        heartbeats = requests.of("CONSUMER_GROUP_HEARTBEAT")
    assert heartbeats and all(each.closed is None for each in heartbeats)
