"""Heartbeat (12): report that a member of a group is alive, and ask whether the group is rebalancing."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class HeartbeatRequest(Request, api_key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+"):
    """A message that one member of a group sends regularly to show that it is alive.

    Version 3 adds `group_instance_id`, the id of a static member. Version 4 uses the flexible encoding (KIP-482).
    Versions 1 and 2 have the same layout as version 0.
    """

    group_id:          str        = t.string()
    generation_id:     int        = t.int32()
    member_id:         str        = t.string()
    group_instance_id: str | None = t.string("3+", nullable="3+", default=None)


class HeartbeatResponse(Response, api_key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+"):
    """The result of a heartbeat. The error REBALANCE_IN_PROGRESS means that the member must join the group again.

    Version 1 adds the throttle time. Version 4 uses the flexible encoding (KIP-482).
    """

    throttle_time_ms: int = t.int32("1+", ignorable=True)
    error_code:       int = t.int16()
