"""FindCoordinator (10): which broker coordinates a consumer group or a transactional id."""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class FindCoordinatorRequest(Request, api_key=ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+"):
    """The group ids or transactional ids whose coordinators the client looks for.

    Version 0 takes one group id. Version 1 adds `key_type`, the kind of the key. Version 3 is flexible. Version 4 takes
    several ids, called keys (KIP-699). Version 6 adds share groups (KIP-932). Versions 2 and 5 each equal the previous
    version.
    """

    key:              str       = t.string("0-3")
    key_type:         int       = t.int8("1+")  # 0: group, 1: transactional id, 2: share group
    coordinator_keys: list[str] = t.array(t.string, "4+")


class FindCoordinatorResponse(Response, api_key=ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+"):
    """The coordinator of each key.

    Version 1 adds the throttle time and an error message. Version 3 is flexible. Version 4 has one entry for each key.
    Every other version equals the previous version.
    """

    class Coordinator(Struct):
        key:           str        = t.string("4+")
        node_id:       int        = t.int32("4+")
        host:          str        = t.string("4+")
        port:          int        = t.int32("4+")
        error_code:    int        = t.int16("4+")
        error_message: str | None = t.string("4+", nullable="4+", default="", ignorable=True)

    throttle_time_ms: int               = t.int32("1+", ignorable=True)
    error_code:       int               = t.int16("0-3")
    error_message:    str | None        = t.string("1-3", nullable="1-3", default="", ignorable=True)
    node_id:          int               = t.int32("0-3")
    host:             str               = t.string("0-3")
    port:             int               = t.int32("0-3")
    coordinators:     list[Coordinator] = t.array(Coordinator, "4+")
