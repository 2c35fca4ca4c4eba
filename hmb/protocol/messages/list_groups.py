"""ListGroups (16): return the groups that a broker coordinates."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ListGroupsRequest(Request, api_key=ApiKey.LIST_GROUPS, versions="0-5", flexible="3+"):
    """A request for the list of groups.

    Version 3 uses the flexible encoding (KIP-482). Version 4 adds a filter for the states of groups (KIP-518). Version
    5 adds a filter for the types of groups (KIP-848).
    """

    states_filter: list[str] = t.array(t.string, "4+")
    types_filter:  list[str] = t.array(t.string, "5+")


class ListGroupsResponse(Response, api_key=ApiKey.LIST_GROUPS, versions="0-5", flexible="3+"):
    """The ids of the groups.

    Version 1 adds the throttle time. Version 3 uses the flexible encoding (KIP-482). Version 4 adds the state of each
    group. Version 5 adds the type of each group.
    """

    class ListedGroup(Struct):
        group_id:      str = t.string()
        protocol_type: str = t.string()
        group_state:   str = t.string("4+", ignorable=True)
        group_type:    str = t.string("5+", ignorable=True)

    throttle_time_ms: int               = t.int32("1+", ignorable=True)
    error_code:       int               = t.int16()
    groups:           list[ListedGroup] = t.array(ListedGroup)
