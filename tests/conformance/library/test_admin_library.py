"""Tests `hmb.Admin`, `hmb.SimpleConsumer` and some commands against brokers of Kafka 4.3.0 and Kafka 0.8.2.2."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

import pytest
from click.testing import CliRunner

import hmb
from hmb.bench import peers
from hmb.cli.main import main
from hmb.client import TopicPartition
from hmb.client.admin import Admin, ConfigEntry, ConfigResource, ConfigSource, NewTopic, ResourceType, ShiftBy, raised
from hmb.client.offsets import AtTime
from hmb.protocol.enums import EARLIEST, LATEST
from hmb.protocol.errors import ErrorCode, KafkaError
from tests.waiting import until

pytestmark = [pytest.mark.external, pytest.mark.slow]

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC = ConfigResource(ResourceType.TOPIC, "t")


@pytest.fixture(scope="module")
def kafka(kafka_43: object) -> Iterator[str]:
    """Start Kafka 4.3.0 with ten records in partition 0 of topic t, with timestamps 1000, 1001, ... ms."""
    with peers.Kafka43() as kafka:
        with Admin(kafka.bootstrap) as admin:
            raised(admin.create_topics([NewTopic("t", 2, 1, {"retention.ms": "-1"})])["t"])
        with hmb.Producer(kafka.bootstrap) as producer:
            for number in range(10):
                producer.send("t", b"%d" % number, partition=0, timestamp=1000 + number).result()
        yield kafka.bootstrap


@pytest.fixture(scope="module")
def old_kafka(kafka_082: object) -> Iterator[str]:
    """Start Kafka 0.8.2.2 with ten records in topic t."""
    with peers.Kafka082() as kafka:
        with hmb.Producer(kafka.bootstrap) as producer:
            for number in range(10):
                producer.send("t", b"%d" % number, partition=0).result()
        yield kafka.bootstrap


def run(*arguments: str, exit_code: int = 0) -> str:
    """Run a command and return its output."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == exit_code, result.output
    return result.stderr if exit_code else result.stdout


def test_topics_and_settings_of_kafka(kafka: str) -> None:
    with Admin(kafka) as admin:
        admin.create_topics(["made"])
        assert admin.create_partitions({"made": 3}) == {"made": None}
        assert "made" in [topic.name for topic in admin.list_topics()]
        admin.alter_configs(TOPIC, set={"flush.ms": "7"}, append={"cleanup.policy": "compact"})

        def described() -> dict[str, ConfigEntry]:
            return dict(raised(admin.describe_configs([TOPIC], documentation=True)[TOPIC]))

        # Kafka's controller stores the settings. Its broker learns of them a little later.
        until(lambda: described()["flush.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG)
        entries = described()
        assert entries["cleanup.policy"].value == "delete,compact"
        assert entries["cleanup.policy"].documentation
        admin.alter_configs(TOPIC, delete=["flush.ms", "cleanup.policy"])
        with pytest.raises(KafkaError, match=r"no setting 'flush\.mss'; did you mean flush\.ms"):
            admin.alter_configs(TOPIC, delete=["flush.mss"])
        (broker,) = admin.describe_cluster().brokers
        loggers = ConfigResource(ResourceType.BROKER_LOGGER, str(broker.broker_id))
        assert "root" in raised(admin.describe_configs([loggers])[loggers])
        assert admin.delete_topics(["made"]) == {"made": None}


def test_records_of_kafka(kafka: str) -> None:
    with Admin(kafka) as admin:
        assert raised(admin.list_offsets({ZERO: 1005})[ZERO])[:2] == (5, 1005)
        assert raised(admin.list_offsets({ZERO: "max-timestamp"})[ZERO]).offset == 9
        assert raised(admin.describe_producers([ZERO])[ZERO])[0].last_sequence == 9
        assert admin.describe_log_dirs()
        ((versions),) = admin.describe_versions().values()
        assert versions.features["metadata.version"] > 0
    with hmb.SimpleConsumer(kafka) as consumer:
        assert [record.value for record in consumer.fetch("t", 0, 7)] == [b"7", b"8", b"9"]
        assert consumer.offsets_before("t", 0, LATEST, 2) == [10, 0]
        assert consumer.offsets_before("t", 0, EARLIEST) == [0]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_of_kafka(kafka: str, protocol: Literal["classic", "consumer"]) -> None:
    group = f"g-{protocol}"
    with hmb.Consumer(kafka, "t", group=group, group_protocol=protocol) as consumer, Admin(kafka) as admin:
        records = 0
        while records < 10:
            records += len(consumer.poll(0.1))
        consumer.commit()
        described = raised(admin.describe_groups([group])[group])
        assert (described.type, described.state) == (protocol, "Stable")
        assert described.members[0].assignment == (ZERO, ONE)
        assert group in [it.group_id for it in admin.list_groups(types=[protocol], states=["stable"])]
        assert run("groups", "reset", group, "--topic", "t", "--to-earliest", "--execute", "-b", kafka, exit_code=1)
    with Admin(kafka) as admin:
        assert admin.describe_lag(group)[ZERO].lag == 0
        plan = admin.plan_reset(group, [ZERO], ShiftBy(-4))
        admin.alter_group_offsets(group, {it: planned.offset for it, planned in plan.items()})
        lag = admin.describe_lag(group)[ZERO]
        assert (lag.lag, lag.unread_since) == (4, 1006)
        assert admin.plan_reset(group, [ZERO], AtTime(1003))[ZERO].offset == 3
        assert admin.delete_group_offsets(group, [ZERO]) == {ZERO: None}
        assert admin.delete_groups([group]) == {group: None}
        missing = admin.describe_groups([group])[group]
        assert isinstance(missing, KafkaError)
        assert missing.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_commands_on_kafka(kafka: str) -> None:
    at = ("-b", kafka)
    ends = {"topic": "t", "partition": 0, "log_start_offset": 0, "log_end_offset": 10, "span": 10}
    assert json.loads(run("offsets", "t:0", "--json", *at)) == ends
    assert " FETCH " in run("meta", "--versions", *at)
    assert "t " in run("meta", *at)
    assert "retention.ms=-1  (dynamic_topic_config)" in run("configs", "describe", "-t", "t", *at)
    run("groups", "reset", "by-command", "--topic", "t", "--to-offset", "4", "--create", "--execute", *at)
    assert "lag 6" in run("groups", "describe", "by-command", *at)
    run("topics", "create", "trimmed", *at)
    with hmb.Producer(kafka) as producer:
        for _ in range(5):
            producer.send("trimmed", b"x").result()
    run("topics", "trim", "trimmed", "--keep", "2", *at)
    assert json.loads(run("offsets", "trimmed", "--json", *at))["log_start_offset"] == 3


def test_kafka_082_supports_a_part_of_the_api(old_kafka: str) -> None:
    with Admin(old_kafka) as admin:
        assert [topic.name for topic in admin.list_topics()] == ["t"]
        nowhere = admin.describe_topics(["nowhere"])["nowhere"]
        assert isinstance(nowhere, KafkaError)
        assert nowhere.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [topic.name for topic in admin.list_topics()] == ["t"]  # `describe_topics` has not created a topic.
        assert raised(admin.list_offsets({ZERO: "latest"})[ZERO]).offset == 10
        assert admin.alter_group_offsets("g", {ZERO: 4}) == {ZERO: None}
        assert admin.describe_lag("g")[ZERO].lag == 6
        for ask, api in (
            (lambda: admin.create_topics(["u"]), "CREATE_TOPICS"),
            (lambda: admin.alter_configs(TOPIC, set={"a": "b"}), "DESCRIBE_CONFIGS"),
            (admin.list_groups, "LIST_GROUPS"),
            (lambda: admin.delete_records({ZERO: 1}), "DELETE_RECORDS"),
        ):
            with pytest.raises(KafkaError, match=f"has no {api} API") as caught:
                ask()
            assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_the_simple_consumer_on_kafka_082(old_kafka: str) -> None:
    with hmb.SimpleConsumer(old_kafka) as consumer:
        assert [record.value for record in consumer.fetch("t", 0, 7)] == [b"7", b"8", b"9"]
        assert consumer.offsets_before("t", 0, LATEST, 9) == [10, 0]
        with pytest.raises(KafkaError, match="does not hold this offset"):
            consumer.fetch("t", 0, 99)
        with pytest.raises(KafkaError, match="has more than 20 bytes"):
            consumer.fetch("t", 0, 0, max_bytes=20)


def test_commands_on_kafka_082(old_kafka: str) -> None:
    at = ("-b", old_kafka)
    assert run("topics", "list", *at) == "t\n"
    assert json.loads(run("topics", "describe", "t", "--json", *at))["partitions"][0]["log_end_offset"] == 10
    assert "without an id, controller unknown, 1 broker" in run("meta", *at)
    run("groups", "reset", "h", "--topic", "t", "--to-offset", "3", "--execute", *at)
    assert "lag 7" in run("groups", "describe", "h", *at)
    assert "has no CREATE_TOPICS API" in run("topics", "create", "u", *at, exit_code=1)
