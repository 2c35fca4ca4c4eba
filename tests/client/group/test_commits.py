"""Tests of commits with old brokers and with a scripted coordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hmb.client.connection import ConnectionFailed
from hmb.client.coordinator import CoordinatorConnection
from hmb.client.group.commits import CommittedOffsets
from hmb.client.group.interface import GroupMetadata, OffsetAndMetadata
from hmb.client.metadata import Cluster
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from hmb.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from hmb.protocol.schema import Request, Response
from hmb.protocol.topics import TopicPartition
from tests.client.group.members import member_settings
from tests.client.scripted_broker import HangUp, ScriptedBroker
from tests.waiting import until

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
ME = GroupMetadata("g", 5, "me", None)


class Coordinator:
    """A scripted coordinator.

    It names itself as the coordinator, and answers each commit with the next error code in `codes`.
    """

    def __init__(self, *codes: int, versions: dict[type[Request], int] | None = None) -> None:
        self.codes = list(codes)
        self.broker = ScriptedBroker(self.answer, versions)
        self.find_code = 0

    def answer(self, request: Request, version: int) -> Response | None:
        if isinstance(request, FindCoordinatorRequest):
            assert (request.coordinator_keys == ["g"]) == (version >= 4) and (request.key == "g") == (version < 4)
            where: dict[str, Any] = {
                "node_id": 7,
                "host": "127.0.0.1",
                "port": self.broker.port,
                "error_code": self.find_code,
            }
            if version >= 4:
                return FindCoordinatorResponse(coordinators=[FindCoordinatorResponse.Coordinator(key="g", **where)])
            return FindCoordinatorResponse(**where)
        if isinstance(request, OffsetCommitRequest):
            return self._committed(request)
        if isinstance(request, OffsetFetchRequest):
            return self._fetched(version)
        return LeaveGroupResponse() if isinstance(request, LeaveGroupRequest) else None

    def _committed(self, request: OffsetCommitRequest) -> OffsetCommitResponse | None:
        code = self.codes.pop(0) if self.codes else 0
        if code == SILENT:
            return None
        if code == HANG_UP:
            raise HangUp
        answered = OffsetCommitResponse.OffsetCommitResponseTopic
        return OffsetCommitResponse(
            topics=[
                answered(
                    name=topic.name,
                    partitions=[
                        answered.OffsetCommitResponsePartition(partition_index=it.partition_index, error_code=code)
                        for it in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _fetched(self, version: int) -> OffsetFetchResponse:
        code = self.codes.pop(0) if self.codes else 0
        if version >= 8:
            group = OffsetFetchResponse.OffsetFetchResponseGroup
            topic: Any = group.OffsetFetchResponseTopics
            partition: Any = topic.OffsetFetchResponsePartitions
        else:
            topic = OffsetFetchResponse.OffsetFetchResponseTopic
            partition = topic.OffsetFetchResponsePartition
        found = [
            partition(partition_index=0, committed_offset=42, metadata="m"),
            partition(partition_index=1, committed_offset=-1, metadata="", error_code=3 if version < 2 else 0),
        ]
        topics = [topic(name="t", partitions=found)]
        if version >= 8:
            return OffsetFetchResponse(groups=[group(group_id="g", topics=topics, error_code=code)])
        return OffsetFetchResponse(topics=topics, error_code=code if version >= 2 else 0)

    def sent(self, kind: type[Request]) -> list[Request]:
        return [request for request, _ in self.broker.requests if isinstance(request, kind)]


HANG_UP = 1000  # With this number instead of an error code, the coordinator closes the connection.
SILENT = -1000  # With this number instead of an error code, the coordinator sends no response.


def offsets_of(
    coordinator: Coordinator,
    identity: Callable[[], GroupMetadata] = lambda: ME,
    refused: Callable[[ErrorCode, GroupMetadata], None] = lambda code, identity: None,
    **settings: Any,
) -> CommittedOffsets:
    cluster = Cluster(coordinator.broker.address)
    return CommittedOffsets(cluster, member_settings(retry_backoff=0.001, **settings), identity, refused)


@pytest.mark.parametrize("version", FindCoordinatorRequest.versions)
def test_the_coordinator_is_found_in_every_version(version: int) -> None:
    coordinator = Coordinator(versions={FindCoordinatorRequest: version})
    with coordinator.broker:
        offsets_of(coordinator).commit({P0: OffsetAndMetadata(1)})
    assert coordinator.broker.requests[0][1] == version


@pytest.mark.parametrize("version", range(1, 10))
def test_a_commit_in_every_version(version: int) -> None:
    coordinator = Coordinator(versions={OffsetCommitRequest: version})
    with coordinator.broker:
        offsets_of(coordinator).commit({P0: OffsetAndMetadata(1, "one", 3), P1: OffsetAndMetadata(2)})
    (request, spoken) = coordinator.broker.requests[-1]
    assert isinstance(request, OffsetCommitRequest) and spoken == version
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("g", 5, "me")
    first, second = request.topics[0].partitions
    assert (first.committed_offset, first.committed_metadata, second.committed_offset) == (1, "one", 2)
    assert first.committed_leader_epoch == (3 if version >= 6 else -1)


@pytest.mark.parametrize("version", range(1, 10))
@pytest.mark.parametrize("require_stable", [False, True])
def test_committed_offsets_in_every_version(version: int, require_stable: bool) -> None:
    coordinator = Coordinator(versions={OffsetFetchRequest: version})
    with coordinator.broker:
        found = offsets_of(coordinator, require_stable=require_stable).committed([P0, P1])
    assert found == {P0: OffsetAndMetadata(42, "m"), P1: None}
    request, spoken = coordinator.broker.requests[-1]
    assert isinstance(request, OffsetFetchRequest) and spoken == version
    assert request.require_stable == (require_stable and version >= 7)


@pytest.mark.parametrize("version", LeaveGroupRequest.versions)
def test_leaving_in_every_version(version: int) -> None:
    coordinator = Coordinator(versions={LeaveGroupRequest: version})
    leaving = LeaveGroupRequest(group_id="g", members=[LeaveGroupRequest.MemberIdentity(member_id="me")])
    with coordinator.broker:
        offsets_of(coordinator).send_leave_request(leaving, 10)
    (request,) = coordinator.sent(LeaveGroupRequest)
    assert isinstance(request, LeaveGroupRequest)
    assert (request.member_id, [it.member_id for it in request.members]) == (
        ("me", []) if version < 3 else ("", ["me"])
    )


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.STALE_MEMBER_EPOCH,
        HANG_UP,
    ],
)
def test_temporary_errors_are_tried_again(code: int) -> None:
    coordinator = Coordinator(code, code)
    epochs = iter([5, 6, 7])
    with coordinator.broker:
        offsets_of(coordinator, lambda: ME._replace(generation_id=next(epochs))).commit({P0: OffsetAndMetadata(1)})
    commits = coordinator.sent(OffsetCommitRequest)
    assert [it.generation_id_or_member_epoch for it in commits] == [5, 6, 7]  # type: ignore[attr-defined]
    moved = code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, HANG_UP)
    assert len(coordinator.sent(FindCoordinatorRequest)) == (3 if moved else 1)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (ErrorCode.ILLEGAL_GENERATION, "group 'g': the group has rebalanced without this consumer"),
        (ErrorCode.UNKNOWN_MEMBER_ID, "nothing was committed"),
        (ErrorCode.REBALANCE_IN_PROGRESS, "the group is rebalancing; nothing was committed. Poll again"),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, "t-0: The metadata string committed with an offset is too long."),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t-0: This broker has no such topic"),
        (1234, "error 1234, which this client does not know"),
    ],
)
def test_a_fatal_error_is_explained_and_reported_to_the_member(code: int, why: str) -> None:
    coordinator = Coordinator(code)
    refusals = []
    with coordinator.broker, pytest.raises(KafkaError, match=why):
        offsets_of(coordinator, refused=lambda *what: refusals.append(what)).commit({P0: OffsetAndMetadata(1)})
    assert [(int(it), who) for it, who in refusals] == [(code if code < 1000 else -1, ME)]


def test_retries_end_after_a_time_limit() -> None:
    coordinator = Coordinator(*[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 1000)
    with coordinator.broker, pytest.raises(KafkaError, match="still loading"):
        offsets_of(coordinator, request_timeout=0.05).commit({P0: OffsetAndMetadata(1)})
    coordinator = Coordinator()
    coordinator.find_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    with coordinator.broker, pytest.raises(KafkaError, match="group 'g': The coordinator is not available"):
        offsets_of(coordinator).commit({P0: OffsetAndMetadata(1)}, timeout=0.05)


def test_committed_offsets_may_be_requested_too_early() -> None:
    coordinator = Coordinator(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    with coordinator.broker:
        assert offsets_of(coordinator).committed([P0])[P0] == OffsetAndMetadata(42, "m")
    coordinator = Coordinator(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    with coordinator.broker, pytest.raises(KafkaError, match="still loading"):
        offsets_of(coordinator).committed([P0], timeout=0.0)  # A timeout of 0 allows one attempt.
    coordinator = Coordinator(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    with coordinator.broker, pytest.raises(KafkaError, match="group 'g': Not allowed"):
        offsets_of(coordinator).committed([P0])


def test_callbacks_of_asynchronous_commits_run_in_order_even_if_the_connection_breaks() -> None:
    coordinator = Coordinator(0, ErrorCode.REBALANCE_IN_PROGRESS, HANG_UP)
    heard: list[tuple[int, Exception | None]] = []
    with coordinator.broker:
        offsets = offsets_of(coordinator)

        def commit(number: int) -> None:
            them = {P0: OffsetAndMetadata(number)}
            offsets.commit_async(them, lambda them, error: heard.append((them[P0].offset, error)))

        commit(0)
        commit(1)
        until(lambda: [offsets.poll(), len(heard)] == [None, 2])  # type: ignore[func-returns-value]
        commit(2)
        commit(3)
        offsets.commit({P0: OffsetAndMetadata(9)})
    (_, fine), (_, refused), (_, broken), (_, behind) = heard
    assert [number for number, _ in heard] == [0, 1, 2, 3]
    assert fine is None and isinstance(refused, KafkaError)
    assert isinstance(broken, ConnectionFailed) and isinstance(behind, ConnectionFailed)


def test_a_commit_that_cannot_be_sent_fails_at_once() -> None:
    coordinator = Coordinator()
    with coordinator.broker:
        pass  # The connection is closed.
    heard: list[Exception | None] = []
    offsets_of(coordinator).commit_async({P0: OffsetAndMetadata(1)}, lambda _, error: heard.append(error))
    assert isinstance(heard[0], ConnectionFailed)


def test_after_a_callback_that_raises_responses_still_match_their_requests() -> None:
    def callback(them: object, error: Exception | None) -> None:
        raise RuntimeError("the program's own fault")

    coordinator = Coordinator(0, ErrorCode.REBALANCE_IN_PROGRESS)
    with coordinator.broker:
        offsets = offsets_of(coordinator)
        offsets.commit_async({P0: OffsetAndMetadata(1)}, callback)
        with pytest.raises(RuntimeError, match="the program's own fault"):
            offsets.commit({P0: OffsetAndMetadata(2)})
        with pytest.raises(KafkaError, match="the group is rebalancing"):
            offsets.commit({P0: OffsetAndMetadata(3)})
        assert offsets.committed([P0])[P0] == OffsetAndMetadata(42, "m")


def test_a_coordinator_that_was_interrupted_waits_for_no_answer() -> None:
    coordinator = Coordinator()
    with coordinator.broker:
        connection = CoordinatorConnection(Cluster(coordinator.broker.address), CoordinatorType.GROUP, "g")
        connection.interrupt()
        with pytest.raises(ConnectionFailed):
            connection.send(HeartbeatRequest, lambda version: HeartbeatRequest(group_id="g"))


def test_a_consumer_that_closes_waits_once_for_a_silent_coordinator() -> None:
    coordinator = Coordinator(SILENT)
    with coordinator.broker:
        offsets = offsets_of(coordinator)
        with pytest.raises(ConnectionFailed, match="did not answer within"):
            offsets.commit_before_leaving({P0: OffsetAndMetadata(1)}, timeout=0.2)
        offsets.send_leave_request(LeaveGroupRequest(group_id="g", member_id="me"), timeout=5)
    sent = [type(request) for request, _ in coordinator.broker.requests]
    assert sent.count(OffsetCommitRequest) == 1
    assert LeaveGroupRequest not in sent
