"""Test cases for quotas: DescribeClientQuotas and AlterClientQuotas."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import QuotaMatch
from hmb.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from hmb.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest

from ..case import Case, Step, case

Entry = AlterClientQuotasRequest.EntryData
Component = DescribeClientQuotasRequest.ComponentData
Names = Mapping[str, str | None]
Values = Mapping[str, float | None]
RATE: Values = {"producer_byte_rate": 1e9}  # large, so that no other comparison is throttled


def entry(names: Names, values: Values = RATE) -> Entry:
    parts = [Entry.EntityData(entity_type=type, entity_name=name) for type, name in names.items()]
    ops = [
        Entry.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
        for key, value in values.items()
    ]
    return Entry(entity=parts, ops=ops)


def alter(*entries: Entry, validate_only: bool = False) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)


def describe(*components: Component, strict: bool = False) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(components=list(components), strict=strict)


def exactly(type: str, name: str | None) -> Component:
    return Component(entity_type=type, match_type=QuotaMatch.EXACT, match=name)


def other(type: str, match_type: int, name: str | None = None) -> Component:
    return Component(entity_type=type, match_type=match_type, match=name)


USER: Names = {"user": "<name>"}
ENTITIES: Mapping[str, Names] = {
    "user": USER,
    "user, default": {"user": None},
    "client id": {"client-id": "<name>"},
    "client id, default": {"client-id": None},
    "user and client id": {"user": "<name>", "client-id": "<name>"},
    "user and default client id": {"user": "<name>", "client-id": None},
    "ip, but the rate of a producer": {"ip": "192.0.2.1"},
    "ip and user": {"ip": "192.0.2.1", "user": "<name>"},
    "none": {},
    "empty user": {"user": ""},
    "unknown type": {"colour": "red"},
    "empty type": {"": "red"},
    "user in capitals": {"User": "<name>"},
}
VALUES: Mapping[str, Values] = {
    "two": {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0},
    "request percentage": {"request_percentage": 0.5},
    "controller mutations": {"controller_mutation_rate": 0.1},
    "connection rate of a user": {"connection_creation_rate": 5.0},
    "unknown key": {"colour": 1.0},
    "empty key": {"": 1.0},
    "scram": {"SCRAM-SHA-256": 1.0},
    "zero": {"producer_byte_rate": 0.0},
    "negative": {"producer_byte_rate": -1.0},
    "fraction": {"producer_byte_rate": 1.5},
    "small fraction": {"producer_byte_rate": 1.0000001},
    "nearly a whole number": {"producer_byte_rate": 1.9999999},
    "largest long": {"producer_byte_rate": float(2**63 - 1)},
    "too large": {"producer_byte_rate": 1e19},
    "infinite": {"producer_byte_rate": math.inf},
    "infinite percentage": {"request_percentage": math.inf},
    "not a number": {"producer_byte_rate": math.nan},
    "no values": {},
    "removed": {"producer_byte_rate": None},
    "removed, unknown key": {"colour": None},
    "one right, one wrong": {"producer_byte_rate": 1.0, "colour": 1.0},
}
ADDRESSES: Mapping[str, tuple[str | None, Values]] = {
    "ip": ("192.0.2.1", {"connection_creation_rate": 1e6}),
    "ip, default": (None, {"connection_creation_rate": 1e6}),
    "ip, version 6": ("2001:db8::1", {"connection_creation_rate": 1e6}),
    "ip, a host name": ("localhost", {"connection_creation_rate": 1e6}),
    "ip, unknown host": ("nobody.invalid", {"connection_creation_rate": 1e6}),
    "ip, fraction": ("192.0.2.1", {"connection_creation_rate": 0.5}),
    "ip, too large": ("192.0.2.1", {"connection_creation_rate": 2.0**31}),
}
FILTERS: Mapping[str, list[Component]] = {
    "user": [exactly("user", "<name>")],
    "user, default": [other("user", QuotaMatch.DEFAULT), exactly("client-id", "<name>")],
    "client id": [exactly("client-id", "<name>")],
    "user and client id": [exactly("user", "<name>"), exactly("client-id", "<name>")],
    "user and any client id": [exactly("user", "<name>"), other("client-id", QuotaMatch.SPECIFIED)],
    "user, no name": [exactly("user", None)],
    "default with a name": [other("user", QuotaMatch.DEFAULT, "x")],
    "any with a name": [other("user", QuotaMatch.SPECIFIED, "x")],
    "match type 3": [other("user", 3)],
    "match type -1": [other("user", -1)],
    "match type 3 with a name": [other("user", 3, "x")],
    "type twice": [exactly("user", "a"), exactly("user", "b")],
    "unknown type": [exactly("colour", "red")],
    "empty type": [exactly("", "red")],
    "ip and user": [exactly("ip", "192.0.2.1"), exactly("user", "a")],
    "ip": [exactly("ip", "192.0.2.7")],
}
SHOW = describe(exactly("user", "<name>"))
STORED = ("two", "small fraction", "nearly a whole number", "not a number", "one right, one wrong")
"""The cases of VALUES that also list the stored quotas. The others would only take time."""
STRICT = ("user", "client id", "user and client id", "user and any client id")
NAMED = [entry(names) for names in (
    USER, {"client-id": "<name>"}, {"user": "<name>", "client-id": "<name>"}, {"user": None, "client-id": "<name>"}
)]  # fmt: skip


def settled(request: DescribeClientQuotasRequest) -> Step:
    return Step(request, settles=True)


def values_case(name: str, values: Values) -> Case:
    steps = [Step(alter(entry(USER, values))), *([settled(SHOW)] if name in STORED else [])]
    return case(f"values: {name}", *steps, versions="1", api_key=ApiKey.ALTER_CLIENT_QUOTAS)


def filter_case(name: str, components: list[Component], strict: bool) -> Case:
    steps = [Step(alter(*NAMED)), settled(describe(*components, strict=strict))] if name in STRICT else []
    return case(
        f"filter: {name}{', strict' if strict else ''}",
        *(steps or [Step(describe(*components, strict=strict))]),
        versions="0+" if name == "user" else "1",
    )


CHANGES: list[Values] = [RATE, {"producer_byte_rate": 7e8}, {"consumer_byte_rate": 9e8}, {"producer_byte_rate": None}]
CASES: list[Case] = [
    *(case(f"entity: {name}", alter(entry(names)), versions="1") for name, names in ENTITIES.items()),
    *(values_case(name, values) for name, values in VALUES.items()),
    *(
        case(f"address: {name}", alter(entry({"ip": ip}, values)), versions="1")
        for name, (ip, values) in ADDRESSES.items()
    ),
    case("no entries", alter()),
    case("two entities", alter(entry(USER), entry({"client-id": "<name>"}))),
    case("an entity twice", alter(entry(USER), entry(USER, {"consumer_byte_rate": 1e9}))),
    case("an entity twice, the first is wrong", alter(entry(USER, {"colour": 1.0}), entry(USER)), versions="1"),
    case(
        "a type twice",
        alter(Entry(entity=[*entry(USER).entity, *entry({"user": "b"}).entity], ops=entry(USER).ops)),
        versions="1",
    ),
    case("a key twice", alter(Entry(entity=entry(USER).entity, ops=[*entry(USER).ops] * 2)), versions="1"),
    case("validate only, wrong", alter(entry(USER, {"colour": 1.0}), validate_only=True), versions="1"),
    case(
        "validate only",
        *(alter(entry(USER), validate_only=True), settled(SHOW)),
        versions="1",
        api_key=ApiKey.ALTER_CLIENT_QUOTAS,
    ),
    case(
        "set, change, remove",
        *(step for values in CHANGES for step in (alter(entry(USER, values)), settled(SHOW))),
        api_key=ApiKey.ALTER_CLIENT_QUOTAS,
    ),
    *(
        filter_case(name, components, strict)
        for name, components in FILTERS.items()
        for strict in ((False, True) if name in STRICT else (False,))
    ),
]
