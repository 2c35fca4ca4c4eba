"""Test cases for JoinGroup: invalid ids, timeouts and protocols, static members, and groups with two members."""

from __future__ import annotations

from hmb.protocol.messages.join_group import JoinGroupRequest

from ..case import Case, Step, captured, case
from . import share_groups, streams_groups
from .groups import (
    RANGE,
    SUBSCRIPTION,
    Leaver,
    heartbeat,
    is_rebalancing,
    join,
    joined,
    leave,
    member_of,
    second_joins,
    stable,
    static,
    sync,
)

KEY = {"api_key": JoinGroupRequest.api_key}
ME = captured("member")
ROUNDROBIN = {"roundrobin": SUBSCRIPTION}
NEW = Step(join(), capture={"member": member_of})

CASES: list[Case] = [
    case("new member", NEW),
    case("new member, then by its id", NEW, join(ME)),
    case("id required, but another given", NEW, join("nobody")),
    case("unknown member of an unknown group", join("nobody")),
    case("no member id, client's own name", join("same-bytes")),
    case("empty group id", join(group_id="")),
    case("long group id", join(group_id="<name>" + "g" * 300)),
    case("group id of spaces", join(group_id="  "), versions="9"),
    case("no protocols", join(protocols={})),
    case("no protocols, with id", NEW, join(ME, protocols={})),
    case("empty protocol type", join(protocol_type="")),
    case("empty protocol name", join(protocols={"": b""})),
    case("same protocol twice", join(protocols={}, protocol_type="consumer"), join(protocols=RANGE | ROUNDROBIN)),
    case("empty metadata", NEW, join(ME, protocols={"range": b""})),
    case("metadata of no consumer", join(protocols={"range": b"what?"}), versions="0-3"),
    case("type of no consumer", join(protocol_type="connect", protocols={"default": b"x"}), versions="0-3"),
    *(
        case(f"session timeout {ms}", join(session_timeout_ms=ms))
        for ms in (0, -1, 5_999, 6_000, 1_800_000, 1_800_001, 2**31 - 1)
    ),
    *(case(f"rebalance timeout {ms}", join(rebalance_timeout_ms=ms), versions="1+") for ms in (-1, 0, 2**31 - 1)),
    case("reason", join(reason="because"), versions="8+"),
    case("stable, same member again", NEW, join(ME), sync(ME), join(ME), versions="4+"),
    case("stable, unknown member", *stable(), join("nobody"), **KEY),
    case("stable, other protocol type", *stable(), join(protocol_type="connect"), **KEY),
    case("stable, other protocols", *stable(), join(protocols=ROUNDROBIN), **KEY),
    case("stable, no protocols", *stable(), join(protocols={}), **KEY),
    case("after leaving", *stable(), leave(Leaver(member_id=ME)), join(ME), **KEY, versions="4+"),
    case("static", join(group_instance_id="instance"), versions="5+"),
    case(
        "static, again by id",
        Step(join(group_instance_id="instance"), capture={"member": member_of}),
        join(ME, group_instance_id="instance"),
        versions="5+",
    ),
    case(
        "static, again without id",
        *static(),
        Step(join(group_instance_id="instance"), capture={"later": member_of}),
        heartbeat(ME, group_instance_id="instance"),
        **KEY,
        versions="5+",
    ),
    case(
        "static, again without id, other protocols",
        *static(),
        join(group_instance_id="instance", protocols=RANGE | ROUNDROBIN),
        **KEY,
        versions="5+",
    ),
    case("static, wrong id", *static(), join("nobody", group_instance_id="instance"), **KEY, versions="5+"),
    case(
        "static, unknown instance with an id",
        *static(),
        join("nobody", group_instance_id="another"),
        **KEY,
        versions="5+",
    ),
    case("static, unknown instance and group", join("nobody", group_instance_id="another"), versions="5+"),
    *(
        case(f"static, instance {what}", join(group_instance_id=name), versions="5+")
        for what, name in {"empty": "", "dot": ".", "slash": "a/b", "of 249": "i" * 249, "of 250": "i" * 250}.items()
    ),
    case("two members", *second_joins(in_vain=False), join(ME), **KEY, versions="4+"),
    case(
        "two members, votes for a protocol",
        *stable(protocols=ROUNDROBIN | RANGE),
        Step(join(protocols=RANGE | ROUNDROBIN), capture={"second": member_of}, connection="second"),
        Step(join(captured("second"), protocols=RANGE | ROUNDROBIN), connection="second", later=True),
        Step(heartbeat(ME), until=is_rebalancing),
        join(ME, protocols=RANGE | ROUNDROBIN),
        **KEY,
        versions="4+",
    ),
    case(
        "two members, one protocol in common",
        *stable(protocols=ROUNDROBIN | RANGE),
        Step(join(), capture={"second": member_of}, connection="second"),
        Step(join(captured("second")), connection="second", later=True),
        Step(heartbeat(ME), until=is_rebalancing),
        join(ME, protocols=ROUNDROBIN | RANGE),
        **KEY,
        versions="4+",
    ),
    case("joined, unknown member", *joined(), join("nobody"), **KEY, versions="4+"),
    *(
        case(f"{kind} group, {what}", *before, join(member), **KEY, ignored=share_groups.ASSIGNED)
        for kind, module in (("share", share_groups), ("streams", streams_groups))
        for what, before, member in (
            ("with a member", [module.JOINED], ""),
            ("with a member, with id", [module.JOINED], "nobody"),
            ("empty, with id", [module.JOINED, module.beat(-1)], "nobody"),
        )
    ),
    case(
        "share group, empty",
        share_groups.JOINED,
        share_groups.beat(-1),
        join(),
        **KEY,
        ignored=share_groups.ASSIGNED,
    ),
]
