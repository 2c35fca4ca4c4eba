"""Tests of the consumer's fetch sessions: first without a broker, then together with HMB's broker."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmb.broker.fetch_sessions import FetchSessions
from hmb.broker.lifecycle import BrokerServer
from hmb.client import Consumer, Producer, TopicPartition
from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.consuming.fetch_session import LEAST_PARTITIONS, FetchRequestData, FetchSessionHandler, PartitionToFetch
from hmb.client.consuming.positions import Position
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.schema import Request
from tests.waiting import until

VERSION = FetchRequest.versions[-1]
TOPIC_ID = UUID(int=7)
Wanted = dict[TopicPartition, PartitionToFetch]


def wanted(count: int = LEAST_PARTITIONS, topic_id: UUID = TOPIC_ID) -> Wanted:
    partitions = [TopicPartition("t", number) for number in range(count)]
    return {it: PartitionToFetch(Position(it, 100), topic_id, 0, 100) for it in partitions}


def opened(partitions: Wanted) -> FetchSessionHandler:
    """Return a session after its first request."""
    session = FetchSessionHandler()
    assert session.next(partitions, VERSION, uses_ids=True) == FetchRequestData(0, 0, partitions, {})
    session.completed(7)
    return session


def test_a_request_names_only_what_has_changed() -> None:
    before = wanted()
    session, now = opened(before), dict(before)
    assert session.next(before, VERSION, uses_ids=True) == FetchRequestData(7, 1, {}, {})
    session.completed(7)
    gone, moved, new = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 99)
    del now[gone]
    now[moved] = now[moved]._replace(fetch_offset=5)
    now[new] = PartitionToFetch(Position(new, 100), TOPIC_ID, 0, 100)
    part = session.next(now, VERSION, uses_ids=True)
    assert part == FetchRequestData(7, 2, {moved: now[moved], new: now[new]}, {gone: before[gone]})
    assert [(it.topic_id, [each.partition for each in it.partitions]) for it in part.topics] == [(TOPIC_ID, [1, 99])]
    assert [(it.topic_id, it.partitions) for it in part.forgotten_topics] == [(TOPIC_ID, [0])]


def test_a_response_that_is_not_completed_leads_to_a_full_fetch() -> None:
    partitions = wanted()
    session = opened(partitions)
    session.next(partitions, VERSION, uses_ids=True)
    assert session.next(partitions, VERSION, uses_ids=True) == FetchRequestData(7, 0, partitions, {})


@pytest.mark.parametrize("change", ["position", "topic", "names"])
def test_another_position_or_another_topic_leads_to_a_full_fetch(change: str) -> None:
    partitions = wanted()
    session = opened(partitions)
    if change != "names":
        partitions = wanted() if change == "position" else wanted(topic_id=UUID(int=8))
    assert session.next(partitions, VERSION, uses_ids=change != "names").epoch == 0


def test_few_partitions_and_old_brokers_get_no_session_and_an_open_session_ends() -> None:
    few, many = wanted(LEAST_PARTITIONS - 1), wanted()
    assert FetchSessionHandler().next(few, VERSION, uses_ids=True) == FetchRequestData(0, -1, few, {})
    assert FetchSessionHandler().next(many, 6, uses_ids=False) == FetchRequestData(0, -1, many, {})
    session = opened(many)
    assert session.next(few, VERSION, uses_ids=True) == FetchRequestData(7, -1, few, {})
    session.completed(0)
    assert session.next(many, VERSION, uses_ids=True) == FetchRequestData(0, 0, many, {})


def test_only_an_incremental_fetch_can_lose_its_session() -> None:
    partitions = wanted()
    session = opened(partitions)
    session.next(partitions, VERSION, uses_ids=True)
    assert not session.is_lost(ErrorCode.NONE)
    assert not session.is_lost(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert session.is_lost(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    assert session.is_lost(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert session.next(partitions, VERSION, uses_ids=True) == FetchRequestData(0, 0, partitions, {})
    assert not session.is_lost(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)


changes = st.lists(
    st.tuples(
        st.integers(0, LEAST_PARTITIONS + 2),  # a partition
        st.sampled_from(["read", "forget", "replace", "nothing"]),
        st.sampled_from(["arrives", "arrives", "arrives", "request is lost", "response is lost", "evicted"]),
    ),
    max_size=15,
)


@settings(max_examples=40)
@given(changes)
def test_the_broker_always_fetches_what_the_consumer_wants(steps: list[tuple[int, str, str]]) -> None:
    """The broker's fetch session always contains exactly the partitions and offsets that the consumer wants.

    The test connects the consumer's fetch session with the fetch session of HMB's broker. Some requests and
    responses are lost, and the broker sometimes forgets its sessions.
    """
    broker, session, now = sessions(), FetchSessionHandler(), wanted(LEAST_PARTITIONS + 1)
    for number, action, fate in steps:
        partition = TopicPartition("t", number)
        before = now.pop(partition, None)
        if action == "read" and before is not None:
            now[partition] = before._replace(fetch_offset=before.fetch_offset + 1)
        elif action == "replace":
            now[partition] = PartitionToFetch(Position(partition, 100), TOPIC_ID, 0, 100)
        elif action == "nothing" and before is not None:
            now[partition] = before
        if fate == "evicted":
            broker = sessions()
        part = session.next(dict(now), VERSION, uses_ids=True)
        if fate == "request is lost":
            continue
        response = answer(broker, part, now)
        if fate == "response is lost":
            continue
        if response.error_code:
            assert session.is_lost(response.error_code)
            assert session.next(dict(now), VERSION, uses_ids=True).named == now
        else:
            session.completed(response.session_id)


def sessions() -> FetchSessions:
    return FetchSessions(slots=1000, eviction_ms=0, clock=lambda: 0)


def answer(broker: FetchSessions, part: FetchRequestData, now: Wanted) -> FetchResponse:
    request = FetchRequest(
        session_id=part.session_id,
        session_epoch=part.epoch,
        topics=part.topics,
        forgotten_topics_data=part.forgotten_topics,
    )
    try:
        context = broker.begin(request, uses_ids=True)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    fetched = {it.partition: (it.topic_id, it.fetch_offset, it.max_bytes) for it in context.partitions}
    assert fetched == {it.partition: tuple(each[1:]) for it, each in now.items()}
    return context.respond([])


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[FetchRequest]:
    """Return a list that collects the Fetch requests that clients send during the test."""
    found: list[FetchRequest] = []
    post = Connection.post

    def noting(connection: Connection, request: Request, version: int | None = None, **options: bool) -> None:
        if isinstance(request, FetchRequest):
            found.append(request)
        post(connection, request, version, **options)

    monkeypatch.setattr(Connection, "post", noting)
    return found


def test_a_consumer_of_many_partitions_names_only_those_with_records(sent: list[FetchRequest]) -> None:
    with BrokerServer(config={"num.partitions": "20"}) as broker, Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"0", partition=5).result(10)
        with Consumer(broker.bootstrap_servers, "t", offset="earliest", max_wait_ms=20) as consumer:
            assert [it.value for it in consumer.poll(10)] == [b"0"]
            for number in range(1, 4):
                place = TopicPartition("t", number)
                producer.send("t", b"%d" % number, partition=number).result(10)
                assert [it.value for it in consumer.poll(10)] == [b"%d" % number]
                assert consumer.lag(place) == 0
            consumer.pause(TopicPartition("t", 1))
            consumer.seek(TopicPartition("t", 2), 0)
            assert [it.value for it in consumer.poll(10)] == [b"2"]
            # The broker forgets all sessions, as after a restart. The consumer opens another session. The request in
            # flight still succeeds.
            broker.context.fetch_sessions._sessions.clear()
            for value in (b"in the old session", b"in the new session"):
                producer.send("t", value, partition=7).result(10)
                until(lambda value=value: [it.value for it in consumer.poll(1)] == [value])  # type: ignore[misc]
    full = [request for request in sent if request.session_epoch <= 0]
    assert [len(request.topics[0].partitions) for request in full] == [20, 19]
    named = [len(topic.partitions) for it in sent if it.session_epoch > 0 for topic in it.topics]
    assert max(named) == 1
    assert sum(map(len, (request.forgotten_topics_data for request in sent))) == 1


def test_a_partition_that_a_response_of_a_session_leaves_out_no_longer_fails(sent: list[FetchRequest]) -> None:
    """If a fetch response does not contain a failed partition, the partition counts as healthy again.

    In a fetch session, a response does not contain the partitions in which nothing has changed.
    """
    with BrokerServer(config={"num.partitions": "20"}) as broker, Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"0", partition=5).result(10)
        with Consumer(broker.bootstrap_servers, "t", offset="earliest", max_wait_ms=20) as consumer:
            assert [it.value for it in consumer.poll(10)] == [b"0"]
            fetcher = consumer._reader.fetcher
            until(lambda: consumer.poll(0.05) == [] and sent[-1].session_epoch > 0)
            positions = list(fetcher.errors._positions.values())
            for position in positions:
                fetcher.errors.failed(position, ConnectionFailed("127.0.0.1", 1, "the leader was away"))
            until(lambda: consumer.poll(0.05) == [] and all(it.failing_since is None for it in positions))
            assert sent[-1].session_epoch > 0, "the session has continued"
