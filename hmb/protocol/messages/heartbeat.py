"""Heartbeat (12): a member says that it lives, and hears whether the group rebalances."""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class HeartbeatRequest(Request, api_key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+"):
    """This member of this generation lives.  v3: static members.  v4: flexible.  v1, v2: no change."""

    group_id:          str        = t.string()
    generation_id:     int        = t.int32()
    member_id:         str        = t.string()
    group_instance_id: str | None = t.string("3+", nullable="3+", default=None)


class HeartbeatResponse(Response, api_key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+"):
    """REBALANCE_IN_PROGRESS tells the member to join anew.  v1: throttle time.  v4: flexible."""

    throttle_time_ms: int = t.int32("1+", ignorable=True)
    error_code:       int = t.int16()
