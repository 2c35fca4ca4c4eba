"""Test cases for CreateTopics: invalid names, counts, assignments and settings, with and without `validate_only`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hmb.protocol.messages.create_topics import CreateTopicsRequest

from ..case import Case, case

Creatable = CreateTopicsRequest.CreatableTopic
Assignment = Creatable.CreatableReplicaAssignment
Config = Creatable.CreatableTopicConfig
NAMES = {
    "empty": "",
    "dot": ".",
    "two dots": "..",
    "slash": "a/b",
    "space": "a b",
    "umlaut": "ä",
    "249 characters": "x" * 249,
    "250 characters": "x" * 250,
    "internal, offsets": "__consumer_offsets",
    "internal, metadata": "__cluster_metadata",
    "exists": "three",
}
COUNTS = {
    "partitions 0": (0, 1),
    "partitions -1": (-1, 1),
    "partitions -2": (-2, 1),
    "partitions of the lowest": (-(2**31), 1),
    "partitions 10,001": (10_001, 1),
    "partitions 100,000": (100_000, 1),
    "partitions of the highest": (2**31 - 1, 1),
    "replication factor 0": (1, 0),
    "replication factor -1": (1, -1),
    "replication factor -2": (1, -2),
    "replication factor 2": (1, 2),
    "replication factor 3": (1, 3),
    "replication factor 32767": (1, 32767),
    "partitions 0, replication factor 3": (0, 3),
}
ASSIGNMENTS: Mapping[str, dict[int, list[int]]] = {
    "one": {0: [0]},
    "two": {0: [0], 1: [0]},
    "reversed": {1: [0], 0: [0]},
    "from 1": {1: [0]},
    "gap": {0: [0], 2: [0]},
    "negative partition": {-1: [0]},
    "wrong broker": {0: [9]},
    "negative broker": {0: [-1]},
    "same broker twice": {0: [0, 0]},
    "one wrong broker of two": {0: [0, 9]},
    "no broker": {0: []},
    "differing factors": {0: [0], 1: [0, 9]},
}
CONFIGS: Mapping[str, dict[str, str | None]] = {
    "good": {"cleanup.policy": "compact", "segment.bytes": "1048576"},
    "cleanup.policy delete": {"cleanup.policy": "delete"},
    "cleanup.policy both": {"cleanup.policy": "compact,delete"},
    "cleanup.policy both, spaced": {"cleanup.policy": "delete, compact"},
    "cleanup.policy empty": {"cleanup.policy": ""},
    "cleanup.policy in capitals": {"cleanup.policy": "COMPACT"},
    "cleanup.policy unknown": {"cleanup.policy": "shred"},
    "unknown name": {"colour": "blue"},
    "empty name": {"": "1"},
    "null value": {"retention.ms": None},
    "empty value": {"retention.ms": ""},
    "no number": {"retention.ms": "soon"},
    "number with spaces": {"retention.ms": " 1000 "},
    "number with a plus": {"retention.ms": "+1000"},
    "number with underscores": {"retention.ms": "1_000"},
    "fraction for a whole number": {"retention.ms": "1.5"},
    "retention.ms -1": {"retention.ms": "-1"},
    "retention.ms -2": {"retention.ms": "-2"},
    "retention.bytes -1": {"retention.bytes": "-1"},
    "retention.bytes -5": {"retention.bytes": "-5"},
    "segment.bytes small": {"segment.bytes": "10"},
    "segment.bytes 1 MiB less 1": {"segment.bytes": "1048575"},
    "segment.bytes large": {"segment.bytes": "2147483648"},
    "segment.ms 0": {"segment.ms": "0"},
    "segment.index.bytes 1": {"segment.index.bytes": "1"},
    "segment.jitter.ms": {"segment.jitter.ms": "5"},
    "index.interval.bytes -1": {"index.interval.bytes": "-1"},
    "max.message.bytes -1": {"max.message.bytes": "-1"},
    "max.message.bytes 0": {"max.message.bytes": "0"},
    "max.message.bytes of 2 GiB": {"max.message.bytes": "2147483648"},
    "message.timestamp.type unknown": {"message.timestamp.type": "SunDial"},
    "message.timestamp.type in capitals": {"message.timestamp.type": "CREATETIME"},
    "message.timestamp.before.max.ms": {"message.timestamp.before.max.ms": "1000"},
    "message.timestamp.after.max.ms -1": {"message.timestamp.after.max.ms": "-1"},
    "message.format.version": {"message.format.version": "2.8"},
    "message.downconversion.enable": {"message.downconversion.enable": "false"},
    "min.insync.replicas 2": {"min.insync.replicas": "2"},
    "min.insync.replicas 0": {"min.insync.replicas": "0"},
    "min.cleanable.dirty.ratio 2": {"min.cleanable.dirty.ratio": "2"},
    "min.cleanable.dirty.ratio -0.1": {"min.cleanable.dirty.ratio": "-0.1"},
    "min.compaction.lag above max": {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"},
    "max.compaction.lag.ms 0": {"max.compaction.lag.ms": "0"},
    "delete.retention.ms -1": {"delete.retention.ms": "-1"},
    "file.delete.delay.ms -1": {"file.delete.delay.ms": "-1"},
    "flush.messages 0": {"flush.messages": "0"},
    "flush.ms -1": {"flush.ms": "-1"},
    "compression.type gzip": {"compression.type": "gzip"},
    "compression.type unknown": {"compression.type": "brotli"},
    "compression.gzip.level 10": {"compression.gzip.level": "10"},
    "preallocate true": {"preallocate": "true"},
    "preallocate maybe": {"preallocate": "maybe"},
    "unclean.leader.election.enable": {"unclean.leader.election.enable": "true"},
    "remote.storage.enable": {"remote.storage.enable": "true"},
    "remote.storage.enable false": {"remote.storage.enable": "false"},
    "local.retention.ms": {"local.retention.ms": "1000"},
    "replicas throttled": {"leader.replication.throttled.replicas": "0:0"},
    "replicas throttled, malformed": {"leader.replication.throttled.replicas": "zero"},
    "a broker's name": {"log.retention.ms": "1000"},
}


def topics(*wanted: Creatable, validate_only: bool = False, timeout: int = 30_000) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(wanted), timeout_ms=timeout, validate_only=validate_only)


def one(
    name: str = "<name>", partitions: int = 1, factor: int = 1, validate_only: bool = False, **options: Any
) -> CreateTopicsRequest:
    wanted = Creatable(name=name, num_partitions=partitions, replication_factor=factor, **options)
    return topics(wanted, validate_only=validate_only)


def assigned(brokers: Mapping[int, list[int]], **options: Any) -> CreateTopicsRequest:
    assignments = [Assignment(partition_index=index, broker_ids=ids) for index, ids in brokers.items()]
    return one(**{"partitions": -1, "factor": -1, "assignments": assignments, **options})


def configured(configs: Mapping[str, str | None], **options: Any) -> CreateTopicsRequest:
    return one(configs=[Config(name=name, value=value) for name, value in configs.items()], **options)


def twice(first: Mapping[str, Any], second: Mapping[str, Any]) -> CreateTopicsRequest:
    both = ({"name": "<name>", "num_partitions": 1, "replication_factor": 1, **each} for each in (first, second))
    return topics(*(Creatable(**each) for each in both))


ONLY_SETTINGS = case("settings in the answer", one(validate_only=True), versions="5+")
CASES_BUT_FOR_SETTINGS = [
    case("one", one()),
    case("none", topics()),
    case("validate only", one(validate_only=True)),
    case("validate only, exists", one("three", validate_only=True)),
    case("validate only, then in earnest", one(validate_only=True), one()),
    case("three partitions", one(partitions=3)),
    case("defaults", one(partitions=-1, factor=-1), versions="4+"),
    case("defaults before v4", one(partitions=-1, factor=-1), versions="2-3"),
    case("twice the same", twice({}, {})),
    case("twice, differing", twice({"num_partitions": 1}, {"num_partitions": 2})),
    case("twice, one bad", twice({}, {"num_partitions": 0})),
    case(
        "good and bad",
        topics(
            Creatable(name="<name>", num_partitions=1, replication_factor=1),
            Creatable(name="a/b", num_partitions=1, replication_factor=1),
        ),
    ),
    case("collision of dot and underscore", one("<name>.a_b"), one("<name>_a.b")),
    case(
        "collision within a request",
        topics(*(Creatable(name=n, num_partitions=1, replication_factor=1) for n in ("<name>.c", "<name>_c"))),
    ),
    case("timeout 0", topics(Creatable(name="<name>", num_partitions=1, replication_factor=1), timeout=0)),
    case("timeout -1", topics(Creatable(name="<name>", num_partitions=1, replication_factor=1), timeout=-1)),
    *(case(f"name {what}", one(name, validate_only=True)) for what, name in NAMES.items()),
    *(
        case(what, one(partitions=partitions, factor=factor, validate_only=True))
        for what, (partitions, factor) in COUNTS.items()
    ),
    *(case(f"assignment {what}", assigned(brokers, validate_only=True)) for what, brokers in ASSIGNMENTS.items()),
    case("assignment in earnest", assigned({0: [0], 1: [0]})),
    case("assignment and partitions", assigned({0: [0]}, partitions=1, validate_only=True)),
    case("assignment and replication factor", assigned({0: [0]}, factor=1, validate_only=True)),
    case(
        "assignment, same partition twice",
        one(
            partitions=-1,
            factor=-1,
            validate_only=True,
            assignments=[Assignment(partition_index=0, broker_ids=[0])] * 2,
        ),
    ),
    case("assignment for an existing topic", assigned({0: [0]}, name="three", validate_only=True)),
    *(
        case(f"config {what}", configured(configs, validate_only=True), versions="7")
        for what, configs in CONFIGS.items()
    ),
    case(
        "config twice the same",
        one(
            validate_only=True, configs=[Config(name="retention.ms", value="1"), Config(name="retention.ms", value="2")]
        ),
    ),
    case("config bad, topic exists", configured({"colour": "blue"}, name="three", validate_only=True)),
    case("config bad, replication factor 3", configured({"colour": "blue"}, factor=3, validate_only=True)),
]
CASES: list[Case] = [ONLY_SETTINGS, *(replace(each, ignored=["configs"]) for each in CASES_BUT_FOR_SETTINGS)]
