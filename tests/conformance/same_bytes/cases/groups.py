"""Makes the requests of the members of a classic group. The requests are valid by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest

from ..case import Step, captured

Protocol = JoinGroupRequest.JoinGroupRequestProtocol
Assignment = SyncGroupRequest.SyncGroupRequestAssignment
Leaver = LeaveGroupRequest.MemberIdentity
SUBSCRIPTION = bytes.fromhex("0000 00000001 0005") + b"three" + bytes.fromhex("ffffffff")  # version 0, topic "three"
ASSIGNMENT = bytes.fromhex("0000 00000001 0005") + b"three" + bytes.fromhex("00000001 00000000 ffffffff")
RANGE = {"range": SUBSCRIPTION}


def join(member: Any = "", protocols: Mapping[str, bytes] = RANGE, **options: Any) -> JoinGroupRequest:
    return JoinGroupRequest(
        **{
            "group_id": "<name>",
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 30_000,
            "member_id": member,
            "protocol_type": "consumer",
            "protocols": [Protocol(name=name, metadata=metadata) for name, metadata in protocols.items()],
            **options,
        }
    )


def sync(
    member: Any, generation: int = 1, assigned: Mapping[Any, bytes] | None = None, **options: Any
) -> SyncGroupRequest:
    given = {member: ASSIGNMENT} if assigned is None else assigned
    assignments = [Assignment(member_id=each, assignment=assignment) for each, assignment in given.items()]
    return SyncGroupRequest(
        **{
            "group_id": "<name>",
            "generation_id": generation,
            "member_id": member,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": assignments,
            **options,
        }
    )


def heartbeat(member: Any, generation: int = 1, **options: Any) -> HeartbeatRequest:
    return HeartbeatRequest(**{"group_id": "<name>", "generation_id": generation, "member_id": member, **options})


def leave(*members: Leaver, group: str = "<name>") -> LeaveGroupRequest:
    return LeaveGroupRequest(group_id=group, members=list(members))


def member_of(answer: Any) -> object:
    return answer.member_id


def is_rebalancing(answer: Any) -> bool:
    return bool(answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS)


def joined(name: str = "member", **options: Any) -> list[Step]:
    """Return the steps in which a single member joins its group.

    The steps do not include SyncGroup. After these steps, the group is in generation 1.
    """
    return [
        Step(join(**options), capture={name: member_of}),
        Step(join(captured(name), **options), capture={name: member_of}),
    ]


def stable(name: str = "member", **options: Any) -> list[Step]:
    """Return the steps in which a single member joins its group and gets an assignment."""
    protocol = {
        "protocol_type": options.get("protocol_type", "consumer"),
        "protocol_name": next(iter(options.get("protocols", RANGE))),
    }
    return [*joined(name, **options), Step(sync(captured(name), **protocol))]


def static(instance: str = "instance") -> list[Step]:
    """Return the steps in which a single static member joins its group and gets an assignment."""
    return [
        Step(join(group_instance_id=instance), capture={"member": member_of}),
        Step(sync(captured("member"), group_instance_id=instance)),
    ]


def emptied() -> list[Step]:
    """Return the steps in which a single member joins its group, gets an assignment, and leaves the group."""
    return [*stable(), Step(leave(Leaver(member_id=captured("member"))))]


def second_joins(*, in_vain: bool = True) -> list[Step]:
    """Return the steps in which a second member joins a stable group.

    The second member waits until the first member rejoins. With `in_vain`, the first member never rejoins.
    """
    return [
        *stable(),
        Step(join(), capture={"second": member_of}, connection="second"),
        Step(join(captured("second")), connection="second", answered=not in_vain, later=not in_vain),
        Step(heartbeat(captured("member")), until=is_rebalancing),
    ]
