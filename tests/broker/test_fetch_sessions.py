"""Tests of fetch sessions: the state that a broker stores, its responses, and the maximum number of sessions."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

import pytest

from hmb.broker.context import ConnectedClient
from hmb.broker.dispatch import Dispatcher
from hmb.broker.fetch_sessions import FetchContext, FetchSessions
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.storage.cleanup import deletion
from tests.broker.conftest import LISTENER, Asker
from tests.storage.conftest import batch

NO_TOPIC_ID = uuid.UUID(int=0)
FetchTopic, Forgotten = FetchRequest.FetchTopic, FetchRequest.ForgottenTopic


def request(
    session: int,
    epoch: int,
    offsets: dict[int, int] | None = None,
    *,
    topic: str = "t",
    id: uuid.UUID = NO_TOPIC_ID,
    forget: Sequence[int] = (),
    max_bytes: int = 1 << 20,
    leader_epoch: int = -1,
) -> FetchRequest:
    """Return a Fetch request for partitions of one topic. `offsets` contains the fetch offset of each partition."""
    partitions = [
        FetchTopic.FetchPartition(
            partition=number, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=leader_epoch
        )
        for number, offset in (offsets or {}).items()
    ]
    return FetchRequest(
        min_bytes=1,
        max_bytes=max_bytes,
        session_id=session,
        session_epoch=epoch,
        topics=[FetchTopic(topic=topic, topic_id=id, partitions=partitions)] if partitions else [],
        forgotten_topics_data=[Forgotten(topic=topic, topic_id=id, partitions=list(forget))] if forget else [],
    )


def returned(response: FetchResponse) -> dict[int, int]:
    """Return the partitions in a response, as `{partition: number of bytes of its records}`."""
    assert response.error_code == 0
    return {p.partition_index: len(p.records or b"") for topic in response.responses for p in topic.partitions}


@pytest.fixture
def session(ask: Asker) -> int:
    """Create a fetch session for the empty partitions 0, 1 and 2 of topic t. Return its id."""
    ask.broker.topics.create("t", 3)
    response = ask(request(0, 0, {0: 0, 1: 0, 2: 0}), 12)
    assert returned(response) == {0: 0, 1: 0, 2: 0}
    assert response.session_id > 0
    return int(response.session_id)


def append(ask: Asker, partition: int, topic: str = "t") -> int:
    """Append a batch with one record to a partition; return the size of the batch in bytes."""
    found = ask.broker.topics.get(topic)
    assert found is not None
    found.partitions[partition].append(batch(1))
    return batch(1).size


def test_an_incremental_answer_names_only_the_partitions_with_news(ask: Asker, session: int) -> None:
    assert returned(ask(request(session, 1), 12)) == {}
    size = append(ask, 1)
    assert returned(ask(request(session, 2), 12)) == {1: size}
    assert returned(ask(request(session, 3), 12)) == {1: size}, "the client has not moved on"
    assert returned(ask(request(session, 4, {1: 1}), 12)) == {}


def test_a_moved_log_start_is_news(ask: Asker, session: int) -> None:
    append(ask, 0)
    assert 0 in returned(ask(request(session, 1, {0: 1}), 12))
    topic = ask.broker.topics.get("t")
    assert topic is not None
    deletion.delete_records(topic.partitions[0], 1)
    assert returned(ask(request(session, 2), 12)) == {0: 0}
    assert returned(ask(request(session, 3), 12)) == {}


def test_partitions_join_and_leave_a_session(ask: Asker, session: int) -> None:
    ask.broker.topics.create("u", 1)
    assert returned(ask(request(session, 1, {0: 0}, topic="u", forget=[]), 12)) == {0: 0}
    size = append(ask, 0, "u")
    append(ask, 2)
    assert returned(ask(request(session, 2, topic="t", forget=[2]), 12)) == {0: size}
    assert returned(ask(request(session, 3, {2: 0}), 12)) == {0: size, 2: size}


def test_an_error_is_reported_until_it_ends_and_its_end_is_reported_once(ask: Asker, session: int) -> None:
    response = ask(request(session, 1, {1: 7}), 12)
    assert response.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    response = ask(request(session, 2), 12)
    assert [p.partition_index for p in response.responses[0].partitions] == [1]
    assert returned(ask(request(session, 3, {1: 0}), 12)) == {1: 0}
    assert returned(ask(request(session, 4), 12)) == {}


def test_a_stale_leader_epoch_is_reported_without_records(ask: Asker, session: int) -> None:
    (topic,) = ask(request(session, 1, {1: 0}, leader_epoch=5), 12).responses
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(1, ErrorCode.UNKNOWN_LEADER_EPOCH)]


def test_a_partition_with_returned_records_comes_after_the_other_partitions(ask: Asker, session: int) -> None:
    """If a response contains records of a partition, the broker reads the other partitions first for the next response.

    Otherwise, one partition with many records could fill every response, and the client would get no other records.
    """
    size = append(ask, 0)
    append(ask, 1)
    small = {"max_bytes": 1}
    assert returned(ask(request(session, 1, **small), 12)) == {0: size, 1: 0}  # type: ignore[arg-type]
    assert returned(ask(request(session, 2, **small), 12)) == {1: size}  # type: ignore[arg-type]
    assert returned(ask(request(session, 3, **small), 12)) == {0: size}  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_unknown_sessions_and_wrong_epochs_are_reported_at_once(ask: Asker, version: int) -> None:
    topic = ask.broker.topics.create("t", 1)
    session = ask(request(0, 0, {0: 0}, id=topic.id), version).session_id

    def code(id: int, epoch: int) -> tuple[int, int]:
        answer = request(id, epoch)
        answer.max_wait_ms = 60_000
        response = ask(answer, version)
        assert response.responses == []
        return response.error_code, response.session_id

    assert code(session + 1, 1) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert code(0, 1) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert code(-5, 1) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert code(session, 2) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    assert code(session, -2) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    assert ask(request(session, 1, {0: 0}, id=topic.id), version).error_code == 0
    assert code(session, 1) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)


def test_a_full_request_ends_the_session_that_it_names(ask: Asker, session: int) -> None:
    again = ask(request(session, 0, {0: 0}), 12)
    assert again.session_id not in (0, session)
    assert ask(request(session, 1), 12).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    last = ask(request(again.session_id, -1, {0: 0}), 12)
    assert (last.session_id, returned(last)) == (0, {0: 0})
    assert len(ask.broker.fetch_sessions) == 0


def test_a_session_without_partitions_ends(ask: Asker, session: int) -> None:
    response = ask(request(session, 1, forget=[0, 1, 2]), 12)
    assert (response.session_id, returned(response)) == (0, {})
    assert len(ask.broker.fetch_sessions) == 0


def test_versions_below_7_have_no_session(ask: Asker) -> None:
    ask.broker.topics.create("t", 1)
    full = request(0, -1, {0: 0})
    for version in range(7):
        assert returned(ask(full, version)) == {0: 0}
    assert len(ask.broker.fetch_sessions) == 0


@pytest.mark.parametrize(("first", "then"), [(12, 13), (13, 12)])
def test_a_session_uses_either_names_or_ids(ask: Asker, first: int, then: int) -> None:
    topic = ask.broker.topics.create("t", 1)
    session = ask(request(0, 0, {0: 0}, id=topic.id), first).session_id
    assert ask(request(session, 1), then).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_topic_created_again_is_another_topic_in_a_session_with_ids(ask: Asker) -> None:
    old = ask.broker.topics.create("t", 1)
    session = ask(request(0, 0, {0: 0}, id=old.id), 13).session_id
    codes = []
    ask.broker.topics.delete([old])
    codes.append(ask(request(session, 1), 13).responses[0].partitions[0].error_code)
    new = ask.broker.topics.create("t", 1)
    (topic,) = ask(request(session, 2), 13).responses
    codes.append(topic.partitions[0].error_code)
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INCONSISTENT_TOPIC_ID]
    assert topic.topic_id == old.id
    size = append(ask, 0)
    (topic,) = ask(request(session, 3, {0: 0}, id=new.id), 13).responses[1:]
    assert (topic.topic_id, len(topic.partitions[0].records)) == (new.id, size)


def test_an_unknown_topic_id_is_reported_until_the_topic_exists(ask: Asker) -> None:
    response = ask(request(0, 0, {0: 0}, id=uuid.UUID(int=7)), 13)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert ask(request(response.session_id, 1), 13).responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_long_poll_of_a_session_wakes_at_a_record(ask: Asker, session: int) -> None:
    looks = iter([False, True])

    def write_at_second_look() -> bool:
        if next(looks, False):
            append(ask, 2)
        return False

    ask.dispatcher = Dispatcher(ask.broker, LISTENER, client=ConnectedClient(is_gone=write_at_second_look))
    waiting = request(session, 1)
    waiting.max_wait_ms = 60_000
    assert returned(ask(waiting, 12)) == {2: batch(1).size}


# -- the cache of sessions, without a broker


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(clock: Clock) -> Callable[..., FetchSessions]:
    return lambda slots: FetchSessions(slots, eviction_ms=100, clock=clock)


def begin(sessions: FetchSessions, size: int) -> int:
    fetch_context = sessions.begin(request(0, 0, dict.fromkeys(range(size), 0)), uses_ids=False)
    return respond(fetch_context).session_id


def respond(fetch_context: FetchContext) -> FetchResponse:
    data = FetchResponse.FetchableTopicResponse.PartitionData
    return fetch_context.respond([(partition, data(records=memoryview(b""))) for partition in fetch_context.partitions])


def use(sessions: FetchSessions, id: int, epoch: int = 1) -> None:
    sessions.begin(request(id, epoch), uses_ids=False)


def test_a_full_cache_removes_the_session_unused_for_longest(
    make: Callable[[int], FetchSessions], clock: Clock
) -> None:
    sessions = make(2)
    first, second = begin(sessions, 5), begin(sessions, 5)
    clock.now = 50
    use(sessions, first)
    clock.now = 101
    third = begin(sessions, 1)
    assert third and len(sessions) == 2
    use(sessions, first, 2)
    with pytest.raises(KafkaError, match="FETCH_SESSION_ID_NOT_FOUND"):
        use(sessions, second)


def test_while_all_are_in_use_only_a_larger_one_displaces_the_smallest_old_one(
    make: Callable[[int], FetchSessions], clock: Clock
) -> None:
    sessions = make(2)
    small, large = begin(sessions, 2), begin(sessions, 3)
    assert begin(sessions, 9) == 0, "the others are too young"
    clock.now = 101
    for id in (small, large):
        use(sessions, id)
    assert begin(sessions, 2) == 0, "not larger"
    assert begin(sessions, 3) > 0
    use(sessions, large, 2)
    with pytest.raises(KafkaError, match="FETCH_SESSION_ID_NOT_FOUND"):
        use(sessions, small, 2)


def test_a_cache_without_slots_makes_no_sessions(make: Callable[[int], FetchSessions]) -> None:
    assert begin(make(0), 1) == 0


def test_the_partitions_of_all_sessions_are_bounded(
    make: Callable[[int], FetchSessions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hmb.broker.fetch_sessions.MAX_SESSION_PARTITIONS", 5)
    sessions = make(9)
    first = begin(sessions, 3)
    assert begin(sessions, 3) == 0
    with pytest.raises(KafkaError, match="FETCH_SESSION_ID_NOT_FOUND"):
        sessions.begin(request(first, 1, dict.fromkeys(range(10, 20), 0)), uses_ids=False)
    assert begin(sessions, 5) > 0, "what the first one held is free again"


def test_of_two_requests_with_one_epoch_only_one_is_answered(make: Callable[[int], FetchSessions]) -> None:
    sessions = make(9)
    id = begin(sessions, 1)
    slow = sessions.begin(request(id, 1), uses_ids=False)
    use(sessions, id, 2)
    assert respond(slow).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_epochs_continue_at_1_after_the_greatest(make: Callable[[int], FetchSessions]) -> None:
    sessions = make(9)
    id = begin(sessions, 1)
    sessions._sessions[id].epoch = 2**31 - 1
    use(sessions, id, 2**31 - 1)
    use(sessions, id, 1)
