"""Runs Kafka 4.3.0's shell tools for topics, settings and other administration against HMB.

The tools for groups are tested in test_group_tools.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hmb.bench import peers
from hmb.client import Producer
from tests.conformance.tools.shell_tools import Result, ShellTools

pytestmark = pytest.mark.external

TOPIC_SETTINGS = 33  # the number of topic settings in Kafka 4.3.0
SETTING = re.compile(r"  (?P<name>\S+?)=(?P<value>.*) sensitive=\w+ synonyms=\{(?P<synonyms>.*)\}")
Settings = dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, kafka_43: Path) -> Iterator[peers.Hmb]:
    with peers.Hmb(tmp_path_factory.mktemp("tools"), config={"log.retention.hours": "100"}) as hmb:
        yield hmb


@pytest.fixture(scope="module")
def tools(broker: peers.Hmb) -> Iterator[ShellTools]:
    with ShellTools(broker.bootstrap) as started:
        yield started


def create(tools: ShellTools, topic: str, partitions: int = 1, **configs: str) -> None:
    settings = [word for name, value in configs.items() for word in ("--config", f"{name.replace('_', '.')}={value}")]
    arguments = ["--create", "--topic", topic, "--partitions", str(partitions), *settings]
    assert f"Created topic {topic}." in tools("kafka-topics", *arguments).output


def partitions(result: Result) -> dict[int, Mapping[str, str]]:
    """Return the fields of each partition from a description of one topic."""
    lines = [dict(re.findall(r"(\w+): ?(\S*)", line)) for line in result.output.splitlines() if line.startswith("\t")]
    return {int(line["Partition"]): line for line in lines}


def settings(tools: ShellTools, entity: str, name: str | None, *options: str) -> Settings:
    """Return the settings that kafka-configs prints: name -> value and synonyms."""
    which = ["--entity-default"] if name is None else ["--entity-name", name]
    output = tools("kafka-configs", "--describe", "--entity-type", entity, *which, *options).output
    return {found["name"]: (found["value"], found["synonyms"]) for found in SETTING.finditer(output)}


def alter(tools: ShellTools, entity: str, name: str | None, *changes: str) -> Result:
    which = ["--entity-default"] if name is None else ["--entity-name", name]
    return tools.run("kafka-configs", "--alter", "--entity-type", entity, *which, *changes)


def test_topics_are_created_listed_described_enlarged_and_deleted(tools: ShellTools) -> None:
    create(tools, "life", 2)
    assert "life" in tools("kafka-topics", "--list").output.split()
    one = partitions(tools("kafka-topics", "--describe", "--topic", "life"))[1]
    assert (one["Leader"], one["Replicas"], one["Isr"]) == ("0", "0", "0")
    tools("kafka-topics", "--alter", "--topic", "life", "--partitions", "5")
    assert sorted(partitions(tools("kafka-topics", "--describe", "--topic", "life"))) == [0, 1, 2, 3, 4]
    tools("kafka-topics", "--delete", "--topic", "life")
    assert "life" not in tools("kafka-topics", "--list").output.split()


def test_topics_are_found_by_their_properties(tools: ShellTools) -> None:
    create(tools, "plain")
    create(tools, "special", retention_ms="5")
    overrides = tools("kafka-topics", "--describe", "--topics-with-overrides").output
    assert "Topic: special" in overrides and "retention.ms=5" in overrides
    for wanted in ("--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"):
        assert partitions(tools("kafka-topics", "--describe", wanted)) == {}
    assert "Topic: plain" in tools("kafka-topics", "--describe", "--at-min-isr-partitions").output


def test_a_replica_assignment_by_hand(tools: ShellTools) -> None:
    tools("kafka-topics", "--create", "--topic", "by-hand", "--replica-assignment", "0,0,0")
    assert len(partitions(tools("kafka-topics", "--describe", "--topic", "by-hand"))) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--create", "--topic", "three", "--replication-factor", "3"], "the replication factor must be 1, not 3"),
        (["--create", "--topic", "twice"], "already exists"),
        (["--create", "--topic", "elsewhere", "--replica-assignment", "1"], "one replica, on broker 0"),
        (["--create", "--topic", "tiers", "--config", "remote.storage.enable=true"], "the value must be one of false"),
        (["--alter", "--topic", "twice", "--partitions", "1"], "1 is not an increase"),
        (["--describe", "--topic", "nobody"], "does not exist"),
        (["--delete", "--topic", "nobody"], "does not exist"),
    ],
)
def test_mistakes_with_topics_are_reported(tools: ShellTools, arguments: list[str], message: str) -> None:
    tools("kafka-topics", "--create", "--topic", "twice", "--if-not-exists")
    result = tools.run("kafka-topics", *arguments)
    assert result.code == 1
    assert message in result.output


def test_settings_of_a_topic(tools: ShellTools) -> None:
    create(tools, "set")
    assert settings(tools, "topics", "set") == {}
    alter(tools, "topics", "set", "--add-config", "retention.ms=2000,cleanup.policy=[compact,delete]")
    described = settings(tools, "topics", "set")
    assert described["retention.ms"] == ("2000", "DYNAMIC_TOPIC_CONFIG:retention.ms=2000")
    assert described["cleanup.policy"] == (
        "compact,delete",
        "DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete",
    )
    alter(tools, "topics", "set", "--delete-config", "retention.ms")
    assert set(settings(tools, "topics", "set")) == {"cleanup.policy"}
    whole = settings(tools, "topics", "set", "--all")
    assert len(whole) == TOPIC_SETTINGS
    assert whole["retention.ms"][0] == str(100 * 60 * 60 * 1000)
    refused = alter(tools, "topics", "set", "--add-config", "segment.bytes=many")
    assert refused.code == 1 and "the value must be a whole number" in refused.output


def test_settings_of_a_broker_and_of_all_brokers(tools: ShellTools) -> None:
    create(tools, "follower")
    alter(tools, "brokers", None, "--add-config", "message.max.bytes=500000")
    alter(tools, "brokers", "0", "--add-config", "message.max.bytes=600000")
    assert settings(tools, "brokers", None)["message.max.bytes"][0] == "500000"
    own, synonyms = settings(tools, "brokers", "0")["message.max.bytes"]
    assert own == "600000"
    assert [place.partition("=")[0] for place in synonyms.split(", ")] == [
        "DYNAMIC_BROKER_CONFIG:message.max.bytes",
        "DYNAMIC_DEFAULT_BROKER_CONFIG:message.max.bytes",
        "DEFAULT_CONFIG:message.max.bytes",
    ]
    assert settings(tools, "topics", "follower", "--all")["max.message.bytes"][0] == "600000"
    alter(tools, "brokers", "0", "--delete-config", "message.max.bytes")
    alter(tools, "brokers", None, "--delete-config", "message.max.bytes")
    assert settings(tools, "brokers", None) == {}
    assert settings(tools, "topics", "follower", "--all")["max.message.bytes"][0] == "1048588"
    refused = alter(tools, "brokers", "0", "--add-config", "node.id=5")
    assert refused.code == 1 and "only before the broker starts: node.id" in refused.output


def test_levels_of_loggers(tools: ShellTools) -> None:
    name = "hmb.broker.network.server"
    alter(tools, "broker-loggers", "0", "--add-config", f"{name}=DEBUG")
    assert settings(tools, "broker-loggers", "0")[name] == ("DEBUG", "")
    alter(tools, "broker-loggers", "0", "--delete-config", name)
    assert settings(tools, "broker-loggers", "0")[name][0] == settings(tools, "broker-loggers", "0")["root"][0]


def test_settings_of_a_group(tools: ShellTools) -> None:
    alter(tools, "groups", "readers", "--add-config", "consumer.session.timeout.ms=50000")
    assert settings(tools, "groups", "readers") == {
        "consumer.session.timeout.ms": (
            "50000",
            "DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000, "
            "DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000",
        )
    }
    alter(tools, "groups", "readers", "--delete-config", "consumer.session.timeout.ms")
    assert settings(tools, "groups", "readers") == {}


def test_sizes_on_disk_and_offsets(tools: ShellTools, broker: peers.Hmb) -> None:
    create(tools, "filled", 2)
    with Producer(broker.bootstrap) as producer:
        for number in range(10):
            producer.send("filled", b"%d" % number, partition=1)
    output = tools("kafka-log-dirs", "--describe", "--topic-list", "filled").output
    (answer,) = (json.loads(line) for line in output.splitlines() if line.startswith("{"))
    (directory,) = answer["brokers"][0]["logDirs"]
    sizes = {each["partition"]: each["size"] for each in directory["partitions"]}
    assert Path(directory["logDir"]) == broker.data_dir.resolve()
    size = (broker.data_dir / "filled-1" / f"{0:020d}.log").stat().st_size
    assert sizes == {"filled-0": 0, "filled-1": size}  # Partition 0 has no file, because only an append creates it.
    assert sizes["filled-0"] == 0 < sizes["filled-1"]
    assert tools("kafka-get-offsets", "--topic", "filled").output.split() == ["filled:0:0", "filled:1:10"]


def test_leaders_are_elected_already(tools: ShellTools) -> None:
    create(tools, "led")
    elect = ["--election-type", "preferred"]
    one = tools("kafka-leader-election", *elect, "--topic", "led", "--partition", "0").output
    assert "Valid replica already elected for partitions led-0" in one
    tools("kafka-leader-election", *elect, "--all-topic-partitions")
    unknown = tools.run("kafka-leader-election", *elect, "--topic", "led", "--partition", "7")
    assert "UnknownTopicOrPartitionException" in unknown.output


def test_a_reassignment_to_the_same_broker_moves_no_partition(tools: ShellTools, tmp_path: Path) -> None:
    create(tools, "moved")

    def plan(*replicas: int) -> str:
        path = tmp_path / "plan.json"
        moves = [{"topic": "moved", "partition": 0, "replicas": replicas}]
        path.write_text(json.dumps({"version": 1, "partitions": moves}))
        return str(path)

    here = ["--reassignment-json-file", plan(0)]
    assert "Successfully started" in tools("kafka-reassign-partitions", *here, "--execute", "--throttle", "9").output
    assert "moved-0 is completed" in tools("kafka-reassign-partitions", *here, "--verify").output
    # The end of the reassignment has removed the throttle.
    assert settings(tools, "topics", "moved") == settings(tools, "brokers", "0") == {}
    assert "No partition reassignments" in tools("kafka-reassign-partitions", "--list").output
    there = tools.run("kafka-reassign-partitions", "--reassignment-json-file", plan(1), "--execute")
    assert "Unknown broker id 1" in there.output


def test_the_cluster_and_its_apis(tools: ShellTools, broker: peers.Hmb) -> None:
    identity = re.search(r"cluster.id=(\S+)", (broker.data_dir / "meta.properties").read_text())
    assert identity is not None
    assert f"Cluster ID: {identity[1]}" in tools("kafka-cluster", "cluster-id").output
    assert tools("kafka-cluster", "list-endpoints").rows()[1][:3] == ["0", "127.0.0.1", str(broker.port)]
    apis = tools("kafka-broker-api-versions").output
    assert "DescribeTopicPartitions(75): 0 [usable: 0]" in apis
    assert "IncrementalAlterConfigs(44): 0 to 1 [usable: 1]" in apis
