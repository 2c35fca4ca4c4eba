"""FindCoordinator (10): ask which broker coordinates a consumer group or a transactional id."""

from typing import ClassVar

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class FindCoordinatorRequest(Request, api_key=ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+"):
    """A request for the coordinators of groups or transactional ids. Each requested id is called a key.

    - Version 0 contains one key, a group id.
    - Version 1 adds `key_type`, so that the key can be a transactional id instead.
    - Version 3 uses the flexible encoding (KIP-482).
    - Version 4 replaces the key by a list of keys (KIP-699).
    - From version 6 on, a key can belong to a share group (KIP-932).

    Versions 2 and 5 each have the same layout as the version before.
    """

    FIRST_VERSION_OF_SHARE: ClassVar[int] = 6

    key:              str       = t.string("0-3")
    key_type:         int       = t.int8("1+")  # 0: group, 1: transactional id, 2: share group
    coordinator_keys: list[str] = t.array(t.string, "4+")


class FindCoordinatorResponse(Response, api_key=ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+"):
    """The addresses of the brokers that coordinate the requested groups or transactional ids.

    - Versions 0 to 3 contain one address.
    - Version 1 adds the throttle time and an error message.
    - Version 3 uses the flexible encoding (KIP-482).
    - From version 4 on, the response contains one address for each requested id.

    Versions 2, 5 and 6 each have the same layout as the version before.
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


FIRST_VERSION_OF_LISTS = FindCoordinatorRequest.first_version("coordinator_keys")
