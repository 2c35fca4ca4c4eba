"""Heartbeat (12): a member of a group reports that it is alive, and learns whether the group rebalances."""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class HeartbeatRequest(Request, api_key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+"):
    """A message that one member of a group sends regularly to show that it is alive.

    Version 3 adds static members. Version 4 is flexible. Versions 1 and 2 equal version 0.
    """

    group_id:          str        = t.string()
    generation_id:     int        = t.int32()
    member_id:         str        = t.string()
    group_instance_id: str | None = t.string("3+", nullable="3+", default=None)


class HeartbeatResponse(Response, api_key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+"):
    """Success, or an error code. REBALANCE_IN_PROGRESS asks the member to join again.

    Version 1 adds the throttle time. Version 4 is flexible.
    """

    throttle_time_ms: int = t.int32("1+", ignorable=True)
    error_code:       int = t.int16()
