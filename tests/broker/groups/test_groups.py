"""Tests of the APIs of classic groups in every version. The broker's dispatcher handles the requests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hmb.broker import BrokerServer
from hmb.broker.errors import CloseConnection
from hmb.client import Connection
from hmb.coordinator import group_runner
from hmb.coordinator.classic.group import ClassicGroup
from hmb.protocol import primitives
from hmb.protocol.connection import ClientConnection
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.delete_groups import DeleteGroupsRequest
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.list_groups import ListGroupsRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest
from hmb.protocol.schema import Request
from tests.broker.conftest import Asker, Wire, as_bytes
from tests.waiting import until

MemberIdentity = LeaveGroupRequest.MemberIdentity


@pytest.fixture
def ask(make_asker: Callable[..., Asker]) -> Iterator[Asker]:
    ask = make_asker(offsets_topic_num_partitions="2")
    ask(FindCoordinatorRequest(key="g"), 0)
    yield ask


JOIN = JoinGroupRequest(
    group_id="g",
    session_timeout_ms=10_000,
    protocol_type="consumer",
    protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range")],
)


def framed(request: Request, version: int) -> bytes:
    return b"".join(map(as_bytes, ClientConnection("test").request(request, version)))


def broker_groups(broker: BrokerServer) -> list[DescribeGroupsResponse.DescribedGroup]:
    host, port = broker.bootstrap_servers.split(":")
    with Connection(host, int(port)) as connection:
        (group,) = connection.send(DescribeGroupsRequest(groups=["g"])).groups
    return list(group.members)


def join(ask: Asker, version: int, member_id: str = "", group_id: str = "g", **options: Any) -> Any:
    """Join a group; return the response. If the first response only assigns a member id, join again with this id."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"topics")
    request = {"group_id": group_id, "session_timeout_ms": 10_000, "rebalance_timeout_ms": 20_000}
    request |= {"protocol_type": "consumer", "protocols": [protocol], **options}
    answer = ask(JoinGroupRequest(member_id=member_id, **request), version)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        return join(ask, version, answer.member_id, group_id, **options)
    return answer


def sync(ask: Asker, version: int, joined: Any, part: bytes = b"part", **options: Any) -> Any:
    request = {"group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id}
    request |= {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    assignment = SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=part)
    return ask(SyncGroupRequest(assignments=[assignment], **(request | options)), version)


def heartbeat(ask: Asker, version: int, joined: Any) -> int:
    request = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    code: int = ask(request, version).error_code
    return code


def leave(ask: Asker, version: int, joined: Any) -> int:
    """Remove a member from the group. Return the error code of this member."""
    if version < 3:
        code: int = ask(LeaveGroupRequest(group_id="g", member_id=joined.member_id), version).error_code
        return code
    answer = ask(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=joined.member_id)]), version)
    assert answer.error_code == 0
    ((member_id, code),) = [(member.member_id, member.error_code) for member in answer.members]
    assert member_id == joined.member_id
    return code


@pytest.mark.parametrize("version", JoinGroupRequest.versions)
def test_a_member_joins_and_leads(ask: Asker, version: int) -> None:
    answer = join(ask, version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.protocol_type == ("consumer" if version >= 7 else None)
    assert answer.leader == answer.member_id
    assert answer.member_id.startswith("test-") and len(answer.member_id) == len("test-") + 36
    assert [(member.member_id, member.metadata) for member in answer.members] == [(answer.member_id, b"topics")]
    (member,) = ask(DescribeGroupsRequest(groups=["g"]), 5).groups[0].members
    assert (member.client_id, member.client_host) == ("test", "/192.0.2.1")


@pytest.mark.parametrize("version", JoinGroupRequest.versions)
def test_an_error_of_join_group_has_no_protocol(ask: Asker, version: int) -> None:
    """An error response to JoinGroup has no protocol name: the name is null, but "" in versions before 7.

    Old clients fail if the protocol name is null.
    """
    answer = ask(JoinGroupRequest(group_id="g", session_timeout_ms=1, member_id="me"), version)
    assert (answer.error_code, answer.generation_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, -1)
    assert (answer.protocol_name, answer.leader, answer.member_id) == (None if version >= 7 else "", "", "me")


def test_version_0_of_join_group_has_the_time_limit_of_its_session(ask: Asker) -> None:
    join(ask, 0)
    (group,) = ask.broker.groups._table.all()
    assert group.as_kind(ClassicGroup).state.members.rebalance_timeout == 10_000


@pytest.mark.parametrize("version", SyncGroupRequest.versions)
def test_the_leader_syncs(ask: Asker, version: int) -> None:
    joined = join(ask, 9)
    answer = sync(ask, version, joined)
    assert (answer.error_code, answer.assignment) == (0, b"part")
    assert answer.protocol_name == ("range" if version >= 5 else None)
    assert sync(ask, version, joined, generation_id=7).error_code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
def test_version_5_of_sync_group_must_name_the_protocol(ask: Asker, missing: str) -> None:
    answer = sync(ask, 5, join(ask, 9), **{missing: None})
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", HeartbeatRequest.versions)
def test_a_heartbeat_response_reports_a_rebalance(ask: Asker, version: int) -> None:
    joined = join(ask, 9)
    assert heartbeat(ask, version, joined) == ErrorCode.NONE
    # The coordinator refuses a member without protocols, so no rebalance starts.
    ask(JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocol_type="x"), 9)
    assert heartbeat(ask, version, joined) == ErrorCode.NONE
    joined.generation_id = 9
    assert heartbeat(ask, version, joined) == ErrorCode.ILLEGAL_GENERATION
    joined.member_id = "unknown"
    assert heartbeat(ask, version, joined) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", LeaveGroupRequest.versions)
def test_a_member_leaves(ask: Asker, version: int) -> None:
    joined = join(ask, 9)
    assert leave(ask, version, joined) == ErrorCode.NONE
    assert leave(ask, version, joined) == ErrorCode.UNKNOWN_MEMBER_ID
    assert ask(DescribeGroupsRequest(groups=["g"]), 5).groups[0].group_state == "Empty"


@pytest.mark.parametrize("version", LeaveGroupRequest.versions)
def test_leaving_a_group_that_does_not_exist_is_an_error(ask: Asker, version: int) -> None:
    group_id = "none" if version else ""
    members = [MemberIdentity(member_id="m"), MemberIdentity(group_instance_id="i")]
    request = {"members": members} if version >= 3 else {"member_id": "m"}
    answer = ask(LeaveGroupRequest(group_id=group_id, **request), version)
    if version >= 3:
        assert [member.error_code for member in answer.members] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    else:
        code = ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID
        assert answer.error_code == code


@pytest.mark.parametrize("version", DescribeGroupsRequest.versions)
def test_describe_groups(ask: Asker, version: int) -> None:
    joined = join(ask, 9, group_instance_id="i")
    sync(ask, 5, joined)
    request = DescribeGroupsRequest(groups=["g", "none"], include_authorized_operations=version >= 3)
    known, unknown = ask(request, version).groups
    assert (known.error_code, known.group_id, known.group_state) == (0, "g", "Stable")
    assert (known.protocol_type, known.protocol_data) == ("consumer", "range")
    (member,) = known.members
    assert (member.member_metadata, member.member_assignment) == (b"topics", b"part")
    assert member.group_instance_id == ("i" if version >= 4 else None)
    assert (known.authorized_operations > 0) == (version >= 3)
    assert (unknown.group_id, unknown.group_state, unknown.members) == ("none", "Dead", [])
    assert unknown.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)
    assert unknown.error_message == ("Group none not found." if version >= 6 else None)


@pytest.mark.parametrize("version", ListGroupsRequest.versions)
def test_list_groups(ask: Asker, version: int) -> None:
    sync(ask, 5, join(ask, 9))
    (group,) = ask(ListGroupsRequest(), version).groups
    assert (group.group_id, group.protocol_type) == ("g", "consumer")
    assert group.group_state == ("Stable" if version >= 4 else "")
    assert group.group_type == ("classic" if version >= 5 else "")
    if version >= 4:
        assert ask(ListGroupsRequest(states_filter=["Empty"]), version).groups == []


@pytest.mark.parametrize("version", DeleteGroupsRequest.versions)
def test_delete_groups(ask: Asker, version: int) -> None:
    joined = join(ask, 9)
    ask(LeaveGroupRequest(group_id="empty", member_id=join(ask, 9, group_id="empty").member_id), 0)
    request = DeleteGroupsRequest(groups_names=["g", "empty", "none", "empty"])
    results = {result.group_id: result.error_code for result in ask(request, version).results}
    assert results == {
        "g": ErrorCode.NON_EMPTY_GROUP,
        "empty": ErrorCode.NONE,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert heartbeat(ask, 4, joined) == ErrorCode.NONE


def test_a_stop_answers_a_join_group_that_waits(broker: BrokerServer, connect: Callable[[], Wire]) -> None:
    """When the broker stops, it responds to a JoinGroup that waits.

    Before a bug was fixed, the client got no response.
    """
    wire = connect()
    wire.ask(FindCoordinatorRequest(key="g"), 2)
    wire.send(framed(JOIN, 3))
    until(lambda: broker_groups(broker))
    broker.stop()
    frame = wire.frame()
    assert frame is not None
    assert int.from_bytes(frame[8:10], "big") == ErrorCode.NOT_COORDINATOR


def test_a_client_that_disconnects_while_its_join_group_waits_frees_its_thread(
    broker: BrokerServer, connect: Callable[[], Wire], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_runner, "CLIENT_CHECK_INTERVAL", 0.01)
    wire = connect()
    wire.ask(FindCoordinatorRequest(key="g"), 2)
    wire.send(framed(JOIN, 3))
    until(lambda: broker_groups(broker))
    wire.socket.shutdown(socket.SHUT_RDWR)
    until(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("connection-")])


def test_without_the_topic_no_coordinator_exists_yet(make_asker: Callable[..., Asker]) -> None:
    ask = make_asker()
    assert join(ask, 9).error_code == ErrorCode.NOT_COORDINATOR
    assert ask(HeartbeatRequest(group_id="g"), 4).error_code == ErrorCode.NOT_COORDINATOR
    assert ask(ListGroupsRequest(), 5).groups == []


@pytest.mark.parametrize("instance_id", [None, "s" * 32_767], ids=["dynamic", "static"])
@pytest.mark.parametrize("version", [3, 5, 9])
def test_a_client_id_of_the_greatest_length_gets_a_member_id(
    ask: Asker, version: int, instance_id: str | None
) -> None:
    """A client whose client id has the greatest possible length gets a member id.

    A member id begins with at most 255 characters of the client id or of the instance id. A whole id could make the
    member id longer than 32,767 bytes, the limit of a string in Kafka's protocol.
    """
    ask.client = ClientConnection("\u00e9" * 16_383)
    static = {} if version < 5 else {"group_instance_id": instance_id}
    joined = join(ask, version, **static)
    assert joined.error_code == 0
    assert len(joined.member_id) == 255 + 1 + 36
    assert sync(ask, 3, joined, **({"group_instance_id": instance_id} if static else {})).error_code == 0


def test_a_sync_with_a_protocol_type_of_40_kb_leaves_the_group_as_it_was(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A SyncGroup with a protocol type of 40 KB does not change the group.

    Before a bug was fixed, the coordinator could not encode such a group's record, and the group was unusable until a
    restart.
    """
    joined = join(ask, 5)
    protocols = {"protocol_type": "p" * 40_000, "protocol_name": "range"}
    with monkeypatch.context() as lenient, pytest.raises(CloseConnection, match="string of 40000 bytes"):
        lenient.setattr(primitives, "LONGEST_STRING", 50_000)
        request = SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id, **protocols)
        frame = framed(request, 5)
        lenient.undo()
        ask.raw(frame[4:])
    assert sync(ask, 5, joined).error_code == 0
    assert heartbeat(ask, 4, joined) == 0
