"""Test cases for DescribeConfigs, AlterConfigs and IncrementalAlterConfigs, with valid and invalid resource types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hmb.protocol.messages.alter_configs import AlterConfigsRequest
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest
from hmb.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

from ..case import FOREVER, Case, Step, Topic, case

TOPIC, BROKER, LOGGER = 2, 4, 8
KINDS = {"unknown": 0, "any": 1, "group": 32, "client metrics": 16, "kind 3": 3, "kind -1": -1, "kind 99": 99}
SET, DELETE, APPEND, SUBTRACT = range(4)
OWN = {"<name>": Topic(configs={"retention.ms": "5000", "cleanup.policy": "compact"})}
# The broker settings that are compared. Most others depend on the machine, or exist in only one of the two brokers.
BROKER_KEYS = ["log.retention.ms", "log.cleanup.policy", "message.max.bytes", "auto.create.topics.enable", "broker.id"]
Described = DescribeConfigsRequest.DescribeConfigsResource
Altered = AlterConfigsRequest.AlterConfigsResource
Changed = IncrementalAlterConfigsRequest.AlterConfigsResource


def described(name: str, keys: list[str] | None = None, kind: int = TOPIC) -> Described:
    return Described(resource_type=kind, resource_name=name, configuration_keys=keys)


def describe(*resources: Described, synonyms: bool = False, documentation: bool = False) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=list(resources), include_synonyms=synonyms, include_documentation=documentation
    )


def altered(configs: Mapping[str, str | None], name: str = "<name>", kind: int = TOPIC) -> Altered:
    values = [Altered.AlterableConfig(name=key, value=value) for key, value in configs.items()]
    return Altered(resource_type=kind, resource_name=name, configs=values)


def alter(*resources: Altered, validate_only: bool = False) -> AlterConfigsRequest:
    return AlterConfigsRequest(resources=list(resources), validate_only=validate_only)


Change = tuple[str, int, str | None]


def changed(*changes: Change, name: str = "<name>", kind: int = TOPIC) -> Changed:
    values = [
        Changed.AlterableConfig(name=key, config_operation=operation, value=value) for key, operation, value in changes
    ]
    return Changed(resource_type=kind, resource_name=name, configs=values)


def change(*resources: Changed, validate_only: bool = False) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)


KEYS = ["cleanup.policy", "retention.ms", "segment.bytes", "max.message.bytes"]
SHOWN = Step(describe(described("<name>", KEYS), synonyms=True), settles=True)


def then_described(name: str, *steps: Any, topics: Mapping[str, Topic] = OWN, versions: str = "1,2") -> Case:
    """Make a test case that changes settings and then describes them."""
    return case(name, *steps, SHOWN, topics=topics, versions=versions, api_key=steps[0].api_key)


def alter_case(name: str, configs: Mapping[str, str | None], **options: Any) -> Case:
    return then_described(name, alter(altered(configs), **options), versions="2")


def change_case(name: str, *changes: Change, **options: Any) -> Case:
    return then_described(name, change(changed(*changes), **options), versions="1")


DESCRIBE = [
    case("none", describe()),
    case("topic, all", describe(described("three"))),
    case(
        "topic with settings, all", describe(described("compacted"), synonyms=True, documentation=True), versions="3+"
    ),
    case("topic, some", describe(described("compacted", ["cleanup.policy", "retention.ms"]), synonyms=True)),
    case("topic, one unknown key", describe(described("compacted", ["cleanup.policy", "colour"]))),
    case("topic, key twice", describe(described("compacted", ["cleanup.policy", "cleanup.policy"]))),
    case("topic, no keys", describe(described("compacted", []))),
    case("topic twice", describe(described("three", []), described("three", ["retention.ms"]))),
    case("unknown topic", describe(described("nobody"))),
    case("known and unknown topic", describe(described("three", KEYS), described("nobody", KEYS))),
    case("bad name", describe(described("a/b"))),
    case("empty name", describe(described(""))),
    case(
        "internal topic",
        describe(described("__consumer_offsets", ["cleanup.policy", "segment.bytes", "compression.type"])),
    ),
    case("broker, some", describe(described("0", BROKER_KEYS, BROKER), synonyms=True), versions="1,4"),
    case("broker, unknown keys", describe(described("0", ["colour"], BROKER))),
    case("broker, no keys", describe(described("0", [], BROKER)), ignored=["configs"]),
    case("all brokers", describe(described("", None, BROKER), synonyms=True)),
    case("broker 9", describe(described("9", BROKER_KEYS, BROKER))),
    case("broker -1", describe(described("-1", BROKER_KEYS, BROKER))),
    case("broker of no number", describe(described("zero", BROKER_KEYS, BROKER))),
    case("loggers of broker 9", describe(described("9", None, LOGGER))),
    case("loggers of all brokers", describe(described("", None, LOGGER))),
    case("loggers of no number", describe(described("zero", None, LOGGER))),
    *(case(what, describe(described("x", None, kind))) for what, kind in KINDS.items()),
    *(case(f"{what}, empty name", describe(described("", None, kind))) for what, kind in KINDS.items()),
    case("all of a broker", describe(described("0", None, BROKER)), versions="4"),
]
ALTER = [
    case("none", alter()),
    alter_case("set one", {"retention.ms": "7000"}),
    alter_case("set none", {}),
    alter_case("set the same", {"retention.ms": "5000", "cleanup.policy": "compact"}),
    alter_case("null", {"retention.ms": None}),
    alter_case("bad value", {"retention.ms": "soon"}),
    alter_case("one good, one bad", {"retention.ms": "1", "cleanup.policy": "shred"}),
    alter_case("unknown key", {"colour": "blue"}),
    alter_case("empty key", {"": "blue"}),
    alter_case("validate only", {"retention.ms": "7000"}, validate_only=True),
    alter_case("validate only, bad", {"retention.ms": "soon"}, validate_only=True),
    case(
        "twice the same topic",
        Step(alter(altered({"retention.ms": "1"}), altered({"retention.ms": "2"})), seconds=FOREVER),
        topics=OWN,
        versions="2",
    ),
    then_described(
        "key twice",
        alter(
            Altered(
                resource_type=TOPIC,
                resource_name="<name>",
                configs=[Altered.AlterableConfig(name="retention.ms", value=n) for n in "12"],
            )
        ),
        versions="2",
    ),
    then_described(
        "known and unknown topic",
        alter(altered({"retention.ms": "1"}), altered({"retention.ms": "2"}, "nobody")),
        versions="2",
    ),
    case("unknown topic", alter(altered({"retention.ms": "1"}, "nobody"))),
    case("bad name", alter(altered({"retention.ms": "1"}, "a/b"))),
    case("empty name", alter(altered({"retention.ms": "1"}, ""))),
    case("broker 9", alter(altered({"log.retention.ms": "1"}, "9", BROKER))),
    case("broker of no number", alter(altered({"log.retention.ms": "1"}, "zero", BROKER))),
    case("broker, unknown key", alter(altered({"colour": "1"}, "0", BROKER), validate_only=True)),
    case("broker, read-only key", alter(altered({"broker.id": "1"}, "0", BROKER), validate_only=True)),
    case("broker, bad value", alter(altered({"log.retention.ms": "soon"}, "0", BROKER), validate_only=True)),
    case("broker, validate only", alter(altered({"log.retention.ms": "1000"}, "0", BROKER), validate_only=True)),
    case("loggers", alter(altered({"root": "INFO"}, "0", LOGGER), validate_only=True)),
    *(case(what, alter(altered({"a": "b"}, "x", kind), validate_only=True)) for what, kind in KINDS.items()),
]
CHANGE = [
    case("none", change()),
    change_case("set", ("retention.ms", SET, "7000")),
    change_case("set null", ("retention.ms", SET, None)),
    change_case("set, bad value", ("retention.ms", SET, "soon")),
    change_case("set, unknown key", ("colour", SET, "blue")),
    change_case("set, empty key", ("", SET, "blue")),
    change_case("delete", ("retention.ms", DELETE, None)),
    change_case("delete, with a value", ("retention.ms", DELETE, "5000")),
    change_case("delete what is not set", ("segment.bytes", DELETE, None)),
    change_case("delete, unknown key", ("colour", DELETE, None)),
    change_case("append", ("cleanup.policy", APPEND, "delete")),
    change_case("append what is there", ("cleanup.policy", APPEND, "compact")),
    change_case("append nothing", ("cleanup.policy", APPEND, "")),
    change_case("append null", ("cleanup.policy", APPEND, None)),
    change_case("append, bad value", ("cleanup.policy", APPEND, "shred")),
    change_case("append to no list", ("retention.ms", APPEND, "1")),
    change_case("append, unknown key", ("colour", APPEND, "blue")),
    change_case("append and set", ("cleanup.policy", APPEND, "delete"), ("retention.ms", SET, "1")),
    change_case("subtract all", ("cleanup.policy", SUBTRACT, "compact")),
    change_case("subtract what is not there", ("cleanup.policy", SUBTRACT, "delete")),
    change_case("subtract from no list", ("retention.ms", SUBTRACT, "1")),
    change_case("subtract null", ("cleanup.policy", SUBTRACT, None)),
    change_case("operation 4", ("retention.ms", 4, "1")),
    change_case("operation -1", ("retention.ms", -1, "1")),
    change_case("key twice", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
    change_case("key twice, other operations", ("retention.ms", SET, "1"), ("retention.ms", DELETE, None)),
    change_case("one good, one bad", ("retention.ms", SET, "1"), ("cleanup.policy", SET, "shred")),
    change_case("nothing"),
    change_case("validate only", ("retention.ms", SET, "7000"), validate_only=True),
    change_case("validate only, bad", ("retention.ms", SET, "soon"), validate_only=True),
    then_described(
        "append, then subtract",
        change(changed(("cleanup.policy", APPEND, "delete"))),
        change(changed(("cleanup.policy", SUBTRACT, "compact"))),
        versions="1",
    ),
    then_described(
        "append to a default",
        change(changed(("cleanup.policy", APPEND, "compact"))),
        versions="1",
        topics={"<name>": Topic()},
    ),
    then_described(
        "subtract from a default",
        change(changed(("cleanup.policy", SUBTRACT, "delete"))),
        versions="1",
        topics={"<name>": Topic()},
    ),
    then_described(
        "twice the same topic",
        change(changed(("retention.ms", SET, "1")), changed(("retention.ms", SET, "2"))),
        versions="1",
    ),
    then_described(
        "known and unknown topic",
        change(changed(("retention.ms", SET, "1")), changed(("retention.ms", SET, "1"), name="nobody")),
        versions="1",
    ),
    case("unknown topic", change(changed(("retention.ms", SET, "1"), name="nobody"))),
    case("unknown topic, nothing", change(changed(name="nobody"))),
    case("bad name", change(changed(("retention.ms", SET, "1"), name="a/b"))),
    case("empty name", change(changed(("retention.ms", SET, "1"), name=""))),
    case("internal topic", change(changed(("retention.ms", SET, "1"), name="__consumer_offsets"), validate_only=True)),
    *(
        case(f"broker, {what}", change(changed(one, name="0", kind=BROKER), validate_only=True))
        for what, one in {
            "good": ("log.retention.ms", SET, "1000"),
            "delete": ("log.retention.ms", DELETE, None),
            "bad value": ("log.retention.ms", SET, "soon"),
            "unknown key": ("colour", SET, "blue"),
            "read-only": ("broker.id", SET, "1"),
            "read-only, delete": ("broker.id", DELETE, None),
            "listeners": ("listeners", SET, "PLAINTEXT://127.0.0.1:1"),
            "append to a list": ("log.cleanup.policy", APPEND, "compact"),
            "append to no list": ("log.retention.ms", APPEND, "1"),
            "only for all": ("message.max.bytes", SET, "1000"),
        }.items()
    ),
    case("all brokers", change(changed(("log.retention.ms", SET, "1000"), name="", kind=BROKER), validate_only=True)),
    case(
        "all brokers, bad value",
        change(changed(("log.retention.ms", SET, "x"), name="", kind=BROKER), validate_only=True),
    ),
    case("broker 9", change(changed(("log.retention.ms", SET, "1"), name="9", kind=BROKER))),
    case("broker of no number", change(changed(("log.retention.ms", SET, "1"), name="zero", kind=BROKER))),
    case("loggers of broker 9", change(changed(("root", SET, "INFO"), name="9", kind=LOGGER))),
    case("logger, unknown level", change(changed(("root", SET, "LOUD"), name="0", kind=LOGGER), validate_only=True)),
    case(
        "logger, unknown name",
        change(changed(("no.such.logger", SET, "INFO"), name="0", kind=LOGGER), validate_only=True),
    ),
    case("logger, append", change(changed(("root", APPEND, "INFO"), name="0", kind=LOGGER), validate_only=True)),
    *(
        case(what, change(changed(("a", SET, "b"), name="x", kind=kind), validate_only=True))
        for what, kind in KINDS.items()
    ),
]
METRICS = {"metrics": "a,b", "interval.ms": "1000", "match": "client_id=x.*,client_software_name=librdkafka"}
CLIENT_METRICS_CHANGES: dict[str, list[Change]] = {
    "all": [(name, SET, value) for name, value in METRICS.items()],
    "one": [("metrics", SET, "*")],
    "append": [("metrics", APPEND, "c")],
    "interval 99": [("interval.ms", SET, "99")],
    "interval 3600001": [("interval.ms", SET, "3600001")],
    "interval soon": [("interval.ms", SET, "soon")],
    "condition without value": [("match", SET, "client_id")],
    "condition of nothing": [("match", SET, "colour=blue")],
    "condition, bad expression": [("match", SET, "client_id=(")],
    "unknown setting": [("colour", SET, "blue")],
    "one good, one bad": [("metrics", SET, "a"), ("interval.ms", SET, "1")],
    "delete": [("metrics", DELETE, None)],
}
CLIENT_METRICS = [
    case(
        f"client metrics, {what}",
        change(changed(*changes, name="<name>", kind=KINDS["client metrics"])),
        Step(describe(described("<name>", None, KINDS["client metrics"]), synonyms=True), settles=True),
        versions="1",
        api_key=IncrementalAlterConfigsRequest.api_key,
    )
    for what, changes in CLIENT_METRICS_CHANGES.items()
]
CASES: Sequence[Case] = [*DESCRIBE, *ALTER, *CHANGE, *CLIENT_METRICS]
