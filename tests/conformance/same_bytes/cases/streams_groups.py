"""Test cases for the APIs of streams groups: epochs, topologies, tasks and missing topics (KIP-1071)."""

from __future__ import annotations

from typing import Any

from hmb.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from hmb.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    TaskIds,
    TaskOffset,
)

from ..case import Case, Step, case
from .consumer_groups import ID
from .groups import stable

Topology = StreamsGroupHeartbeatRequest.Topology
Subtopology = Topology.Subtopology
TopicInfo, Group = Subtopology.TopicInfo, Subtopology.CopartitionGroup


def beat(epoch: int, member: str = ID, **options: Any) -> StreamsGroupHeartbeatRequest:
    fields = {"group_id": "<name>", "member_id": member, "member_epoch": epoch, **options}
    return StreamsGroupHeartbeatRequest(**fields)


def topology(*subtopologies: Subtopology, epoch: int = 0) -> Topology:
    return Topology(epoch=epoch, subtopologies=list(subtopologies) or [part("three")])


def part(*sources: str, name: str = "0", **fields: Any) -> Subtopology:
    return Subtopology(subtopology_id=name, source_topics=list(sources), **fields)


def join(member: str = ID, **options: Any) -> StreamsGroupHeartbeatRequest:
    fields = {
        "rebalance_timeout_ms": 10_000,
        "topology": topology(),
        "process_id": "p",
        "client_tags": [],
        **{f"{role}_tasks": [] for role in ("active", "standby", "warmup")},
        **options,
    }
    return beat(0, member, **fields)


def joined(*subtopologies: Subtopology, **options: Any) -> StreamsGroupHeartbeatRequest:
    return join(topology=topology(*subtopologies), **options)


def owned(*numbers: int, subtopology: str = "0") -> dict[str, Any]:
    tasks = [TaskIds(subtopology_id=subtopology, partitions=list(numbers))]
    return {"active_tasks": tasks, "standby_tasks": [], "warmup_tasks": []}


def describe(*groups: str) -> StreamsGroupDescribeRequest:
    return StreamsGroupDescribeRequest(group_ids=list(groups))


def split(**info: Any) -> tuple[Subtopology, Subtopology]:
    """Return two subtopologies with a repartition topic between them."""
    configs = [KeyValue(key="cleanup.policy", value="delete")]
    between = TopicInfo(name="<name>-r", topic_configs=configs, **info)
    return part("three", repartition_sink_topics=["<name>-r"]), part(name="1", repartition_source_topics=[between])


# Kafka names missing topics in the order of a hash table, so most cases have only one missing topic.
STATEFUL = part("three", state_changelog_topics=[TopicInfo(name="<name>-c")])
JOINED = Step(join())
BEAT = [
    case("join", join()),
    case("join again", JOINED, join()),
    case("join without id", join("")),
    *(case(f"join, then epoch {epoch}", JOINED, beat(epoch)) for epoch in (0, 1, 5, -2, -3, 2**31 - 1)),
    case("leave", JOINED, beat(-1)),
    case("leave, then beat", JOINED, beat(-1), beat(1)),
    case("leave twice", JOINED, beat(-1), beat(-1)),
    case("leave with a shutdown", JOINED, beat(-1, shutdown_application=True)),
    case("shutdown", JOINED, join("other"), join("other", shutdown_application=True), join()),
    case("unknown member", JOINED, beat(1, "nobody")),
    case("unknown member leaves", JOINED, beat(-1, "nobody")),
    case("unknown group", beat(1)),
    case("unknown group, leave", beat(-1)),
    case("empty group id", join(group_id="")),
    case("empty member id, beat", beat(1, "")),
    case("rack", join(rack_id="r1")),
    case("rack, empty", join(rack_id="")),
    case("instance id", join(instance_id="i")),
    case("instance id, empty", join(instance_id="")),
    case("no rebalance timeout", join(rebalance_timeout_ms=-1)),
    case("no topology", join(topology=None)),
    *(case(f"{role} null", join(**{role: None})) for role in ("active_tasks", "standby_tasks", "warmup_tasks")),
    *(case(f"{role} owned", join(**{role: owned(0)["active_tasks"]})) for role in ("active_tasks", "warmup_tasks")),
    case("offsets of tasks", join(task_offsets=[TaskOffset(subtopology_id="0")])),
    case("end offsets of tasks", join(task_end_offsets=[])),
    case("address", join(user_endpoint=Endpoint(host="h", port=1))),
    case("address, then epoch 1", JOINED, join(user_endpoint=Endpoint(host="h", port=1), endpoint_information_epoch=1)),
    case("topology in a beat", JOINED, beat(1, topology=topology())),
    case("one kind of tasks", JOINED, beat(1, active_tasks=[])),
    case("unknown subtopology", JOINED, beat(0, **owned(0, subtopology="9"))),
    case("other topology", JOINED, joined(part("two"))),
    case("newer topology", JOINED, join("other", topology=topology(epoch=1))),
    case("older topology", join(topology=topology(epoch=1)), join("other")),
    case("classic group, stable", *stable(), join()),
]
TOPOLOGIES = [
    case("missing source", joined(part("nobody"))),
    case("four missing sources", joined(part("nobody", "nowhere", "nothing", "none"))),
    case("changelog is missing", joined(STATEFUL)),
    case("repartition topic is missing", joined(*split())),
    case("repartition topic of 4 partitions", joined(*split(partitions=4))),
    case("changelog of 1 partition", joined(part("three", state_changelog_topics=[TopicInfo(name="c", partitions=1)]))),
    case("internal topic of Kafka", joined(part("__consumer_offsets"))),
    case("illegal name", joined(part("a b"))),
    case("regular expression", joined(part(source_topic_regex=["a.*"]))),
    case("no sources", joined(part())),
    case("never written", joined(part(repartition_source_topics=[TopicInfo(name="r")]))),
    case("a loop", joined(part(repartition_source_topics=[TopicInfo(name="r")], repartition_sink_topics=["r"]))),
    case("copartitioned", joined(part("three", "two", copartition_groups=[Group(source_topics=[0, 1])]))),
]
DESCRIBE = [
    case("none", describe()),
    case("unknown", describe("nobody")),
    case("empty id", describe("")),
    case("unknown twice", describe("nobody", "nobody")),
    case("joined", JOINED, describe("<name>")),
    case("missing source", joined(part("nobody")), describe("<name>")),
    case("internal topic is missing", joined(STATEFUL), describe("<name>")),
    case("left", JOINED, beat(-1), describe("<name>")),
    case("classic group", *stable(), describe("<name>")),
]
CASES: list[Case] = [*BEAT, *TOPOLOGIES, *DESCRIBE]
