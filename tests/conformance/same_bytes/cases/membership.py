"""Test cases for SyncGroup, Heartbeat and LeaveGroup: wrong generations, ids and group states."""

from __future__ import annotations

from typing import Any

from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest

from ..case import Case, Message, Step, captured, case
from .groups import (
    ASSIGNMENT,
    Leaver,
    emptied,
    heartbeat,
    is_rebalancing,
    join,
    joined,
    leave,
    second_joins,
    stable,
    static,
    sync,
)

ME, SECOND = captured("member"), captured("second")
STATIC: dict[str, Any] = {"group_instance_id": "instance"}


def about(key: Any, name: str, *steps: Any, **options: Any) -> Case:
    return case(name, *steps, **{"api_key": key.api_key, **options})


def left(version: int, member: Any = ME, group: str = "<name>") -> Message:
    """Return the LeaveGroup request of one member. Version 3 and later contain a list of members."""
    if version < 3:
        return LeaveGroupRequest(group_id=group, member_id=member)
    return leave(Leaver(member_id=member), group=group)


SYNC = [
    about(SyncGroupRequest, "good", *joined(), sync(ME)),
    about(SyncGroupRequest, "again", *stable(), sync(ME)),
    about(SyncGroupRequest, "again, without assignments", *stable(), sync(ME, assigned={})),
    *(about(SyncGroupRequest, f"generation {n}", *joined(), sync(ME, n)) for n in (-1, 0, 2)),
    *(about(SyncGroupRequest, f"stable, generation {n}", *stable(), sync(ME, n)) for n in (-1, 0, 2)),
    about(SyncGroupRequest, "unknown member", *joined(), sync("nobody")),
    about(SyncGroupRequest, "empty member id", *joined(), sync("")),
    about(SyncGroupRequest, "unknown group", sync("nobody")),
    about(SyncGroupRequest, "empty group id", sync("nobody", group_id="")),
    about(SyncGroupRequest, "empty group", *emptied(), sync(ME)),
    about(SyncGroupRequest, "no assignments", *joined(), sync(ME, assigned={})),
    about(SyncGroupRequest, "assignment of a stranger", *joined(), sync(ME, assigned={"nobody": ASSIGNMENT})),
    about(
        SyncGroupRequest, "assignment of a stranger too", *joined(), sync(ME, assigned={ME: ASSIGNMENT, "nobody": b""})
    ),
    about(SyncGroupRequest, "empty assignment", *joined(), sync(ME, assigned={ME: b""})),
    about(SyncGroupRequest, "other protocol type", *joined(), sync(ME, protocol_type="connect"), versions="5+"),
    about(SyncGroupRequest, "other protocol", *joined(), sync(ME, protocol_name="roundrobin"), versions="5+"),
    about(
        SyncGroupRequest,
        "protocol missing",
        *joined(),
        sync(ME, protocol_type=None, protocol_name=None),
        versions="5+",
    ),
    about(SyncGroupRequest, "stable, other protocol", *stable(), sync(ME, protocol_name="roundrobin"), versions="5+"),
    about(SyncGroupRequest, "static", *static(), sync(ME, **STATIC), versions="3+"),
    about(SyncGroupRequest, "static, wrong id", *static(), sync("nobody", **STATIC), versions="3+"),
    about(
        SyncGroupRequest, "static, unknown instance", *static(), sync(ME, group_instance_id="another"), versions="3+"
    ),
    about(SyncGroupRequest, "instance of a dynamic member", *joined(), sync(ME, **STATIC), versions="3+"),
    about(SyncGroupRequest, "rebalancing", *second_joins(), sync(ME)),
    about(
        SyncGroupRequest,
        "two members",
        *second_joins(in_vain=False),
        join(ME),
        Step(sync(SECOND, 2, {}), connection="second", later=True),
        sync(ME, 2, {ME: ASSIGNMENT, SECOND: b"second"}),
    ),
    about(
        SyncGroupRequest,
        "two members, one assignment",
        *second_joins(in_vain=False),
        join(ME),
        Step(sync(SECOND, 2, {}), connection="second", later=True),
        sync(ME, 2),
    ),
]
HEARTBEAT = [
    about(HeartbeatRequest, "good", *stable(), heartbeat(ME)),
    about(HeartbeatRequest, "before sync", *joined(), heartbeat(ME)),
    *(about(HeartbeatRequest, f"generation {n}", *stable(), heartbeat(ME, n)) for n in (-1, 0, 2, 2**31 - 1)),
    about(HeartbeatRequest, "unknown member", *stable(), heartbeat("nobody")),
    about(HeartbeatRequest, "empty member id", *stable(), heartbeat("")),
    about(HeartbeatRequest, "unknown group", heartbeat("nobody")),
    about(HeartbeatRequest, "unknown group, generation -1", heartbeat("nobody", -1)),
    about(HeartbeatRequest, "empty group id", heartbeat("nobody", group_id="")),
    about(HeartbeatRequest, "empty group", *emptied(), heartbeat(ME)),
    about(HeartbeatRequest, "static", *static(), heartbeat(ME, **STATIC), versions="3+"),
    about(HeartbeatRequest, "static, wrong id", *static(), heartbeat("nobody", **STATIC), versions="3+"),
    about(HeartbeatRequest, "static, instance missing", *static(), heartbeat(ME), versions="3+"),
    about(
        HeartbeatRequest,
        "static, unknown instance",
        *static(),
        heartbeat(ME, group_instance_id="another"),
        versions="3+",
    ),
    about(HeartbeatRequest, "instance of a dynamic member", *stable(), heartbeat(ME, **STATIC), versions="3+"),
    about(HeartbeatRequest, "rebalancing", *second_joins(), Step(heartbeat(ME), until=is_rebalancing)),
    about(HeartbeatRequest, "rebalancing, wrong generation", *second_joins(), heartbeat(ME, 5)),
    about(HeartbeatRequest, "new generation, not synced", *second_joins(in_vain=False), join(ME), heartbeat(ME, 2)),
]
LEAVE = [
    about(LeaveGroupRequest, "good", *stable(), left),
    about(LeaveGroupRequest, "twice", *stable(), left, left),
    about(LeaveGroupRequest, "unknown member", *stable(), lambda version: left(version, "nobody")),
    about(LeaveGroupRequest, "empty member id", *stable(), lambda version: left(version, "")),
    about(LeaveGroupRequest, "unknown group", lambda version: left(version, "nobody")),
    about(LeaveGroupRequest, "empty group id", lambda version: left(version, "nobody", "")),
    about(LeaveGroupRequest, "empty group", *emptied(), left, versions="3+"),
    about(LeaveGroupRequest, "nobody", *stable(), leave(), versions="3+"),
    about(
        LeaveGroupRequest,
        "one known, one unknown",
        *stable(),
        leave(Leaver(member_id=ME), Leaver(member_id="nobody")),
        versions="3+",
    ),
    about(
        LeaveGroupRequest, "the same twice", *stable(), leave(Leaver(member_id=ME), Leaver(member_id=ME)), versions="3+"
    ),
    about(LeaveGroupRequest, "reason", *stable(), leave(Leaver(member_id=ME, reason="tired")), versions="5+"),
    about(
        LeaveGroupRequest, "static by instance", *static(), leave(Leaver(group_instance_id="instance")), versions="3+"
    ),
    about(
        LeaveGroupRequest,
        "static by both",
        *static(),
        leave(Leaver(member_id=ME, group_instance_id="instance")),
        versions="3+",
    ),
    about(LeaveGroupRequest, "static by id", *static(), leave(Leaver(member_id=ME)), versions="3+"),
    about(
        LeaveGroupRequest,
        "static, wrong id",
        *static(),
        leave(Leaver(member_id="x", group_instance_id="instance")),
        versions="3+",
    ),
    about(
        LeaveGroupRequest,
        "static, unknown instance",
        *static(),
        leave(Leaver(group_instance_id="another")),
        versions="3+",
    ),
    about(LeaveGroupRequest, "rebalancing", *second_joins(), left),
    about(LeaveGroupRequest, "before sync", *joined(), left),
    about(LeaveGroupRequest, "id given, not yet joined", *joined()[:1], left),
]
CASES: list[Case] = [*SYNC, *HEARTBEAT, *LEAVE]
