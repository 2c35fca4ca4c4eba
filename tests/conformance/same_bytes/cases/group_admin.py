"""Test cases for DescribeGroups, ListGroups and DeleteGroups: groups in each state, and unknown groups."""

from __future__ import annotations

from typing import Any

from hmb.protocol.messages.delete_groups import DeleteGroupsRequest
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest
from hmb.protocol.messages.list_groups import ListGroupsRequest

from ..case import Case, case
from .groups import emptied, joined, second_joins, stable, static


def describe(*groups: str, operations: bool = False) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=list(groups), include_authorized_operations=operations)


def delete(*groups: str) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=list(groups))


def listed(states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> ListGroupsRequest:
    return ListGroupsRequest(states_filter=list(states), types_filter=list(types))


def list_with(name: str, **options: Any) -> Case:
    """Make a test case that creates a stable group, and then lists groups with the filters in `options`."""
    newest = "5" if "types" in options else "4+"
    return case(name, *stable(), listed(**options), versions=newest, api_key=ListGroupsRequest.api_key)


# These cases run before all other cases with groups. They list only the groups that they create themselves.
LIST_CASES: list[Case] = [
    case("no groups", listed()),
    case("stable", *stable(), listed(), api_key=ListGroupsRequest.api_key),
    case("not synced", *joined(), listed(), api_key=ListGroupsRequest.api_key),
    case("emptied", *emptied(), listed(), api_key=ListGroupsRequest.api_key),
    *(
        list_with(f"state {state}", states=(state,))
        for state in (
            "Stable",
            "stable",
            "Empty",
            "CompletingRebalance",
            "PreparingRebalance",
            "Dead",
            "Assigning",
            "nonsense",
            "",
        )
    ),
    list_with("several states", states=("Stable", "Empty")),
    list_with("one state unknown", states=("Stable", "nonsense")),
    *(list_with(f"type {kind}", types=(kind,)) for kind in ("classic", "Classic", "consumer", "share", "nonsense", "")),
    list_with("type and state", types=("classic",), states=("Empty",)),
]
CASES: list[Case] = [
    case("none", describe()),
    case("unknown", describe("nobody")),
    case("empty id", describe("")),
    case("unknown twice", describe("nobody", "nobody")),
    case("stable", *stable(), describe("<name>")),
    case("stable, twice", *stable(), describe("<name>", "<name>")),
    case("stable and unknown", *stable(), describe("<name>", "nobody")),
    case("static", *static(), describe("<name>")),
    case("not synced", *joined(), describe("<name>")),
    case("emptied", *emptied(), describe("<name>")),
    case("rebalancing", *second_joins(), describe("<name>")),
    case("operations", *stable(), describe("<name>", operations=True), versions="3+"),
    case("operations, unknown", describe("nobody", operations=True), versions="3+"),
    case("type of no consumer", *stable(protocol_type="connect"), describe("<name>")),
    case("none", delete()),
    case("unknown", delete("nobody")),
    case("empty id", delete("")),
    case("unknown twice", delete("nobody", "nobody")),
    case("stable", *stable(), delete("<name>"), describe("<name>"), api_key=DeleteGroupsRequest.api_key),
    case("not synced", *joined(), delete("<name>")),
    case("id given, not yet joined", *joined()[:1], delete("<name>")),
    case("emptied", *emptied(), delete("<name>"), describe("<name>"), api_key=DeleteGroupsRequest.api_key),
    case("emptied, twice", *emptied(), delete("<name>"), delete("<name>")),
    case("emptied, twice in a request", *emptied(), delete("<name>", "<name>")),
    case("emptied and unknown", *emptied(), delete("<name>", "nobody")),
]
