"""ListGroups (16): the groups that this broker coordinates."""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ListGroupsRequest(Request, api_key=ApiKey.LIST_GROUPS, versions="0-5", flexible="3+"):
    """List them.  v3: flexible.  v4: only those in these states (KIP-518).  v5: only those of these types (KIP-848)."""

    states_filter: list[str] = t.array(t.string, "4+")
    types_filter:  list[str] = t.array(t.string, "5+")


class ListGroupsResponse(Response, api_key=ApiKey.LIST_GROUPS, versions="0-5", flexible="3+"):
    """Their ids.  v1: throttle time.  v3: flexible.  v4: each one's state.  v5: its type."""

    class ListedGroup(Struct):
        group_id:      str = t.string()
        protocol_type: str = t.string()
        group_state:   str = t.string("4+", ignorable=True)
        group_type:    str = t.string("5+", ignorable=True)

    throttle_time_ms: int               = t.int32("1+", ignorable=True)
    error_code:       int               = t.int16()
    groups:           list[ListedGroup] = t.array(ListedGroup)
