"""Test cases for FindCoordinator: all types of keys, with valid and with invalid keys."""

from __future__ import annotations

from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest as Request
from hmb.protocol.messages.find_coordinator import FindCoordinatorResponse as Response

from ..case import Case, Step, case

KINDS = {"group": 0, "transaction": 1, "share": 2, "kind 3": 3, "kind -1": -1}


def keys(*wanted: str, kind: int = 0) -> Request:
    return Request(key_type=kind, coordinator_keys=list(wanted))


def is_known(answer: Response) -> bool:
    """Return whether the broker has created the internal topic of this coordinator."""
    return answer.coordinators[0].error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE


CASES: list[Case] = [
    case("group", Request(key="one"), versions="0-3"),
    case("group, empty key", Request(key=""), versions="0-3"),
    *(case(what, Request(key="one", key_type=kind), versions="1-3") for what, kind in KINDS.items() if kind),
    *(
        case(f"{what}, empty key", Request(key="", key_type=kind), versions="1-3")
        for what, kind in KINDS.items()
        if kind
    ),
    *(case(f"{what}, one key", keys("one", kind=kind), versions="4+") for what, kind in KINDS.items()),
    *(
        case(f"{what}, several keys", keys("one", "two", "one", kind=kind), versions="4+")
        for what, kind in KINDS.items()
    ),
    *(case(f"{what}, empty key in a list", keys("", kind=kind), versions="4+") for what, kind in KINDS.items()),
    *(case(f"{what}, no keys", keys(kind=kind), versions="4+") for what, kind in KINDS.items()),
    case("share, a real key", Step(keys("group:AAAAAAAAAAAAAAAAAAAAAQ:0", kind=2), until=is_known), versions="4+"),
    case("share, key without partition", keys("group:AAAAAAAAAAAAAAAAAAAAAQ", kind=2), versions="4+"),
]
