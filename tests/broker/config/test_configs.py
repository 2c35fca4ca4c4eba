"""Tests of the APIs for settings: DescribeConfigs, AlterConfigs and IncrementalAlterConfigs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from hmb.broker.config.groups.overrides import consumer_group_settings
from hmb.protocol.enums import ConfigOperation
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.alter_configs import AlterConfigsRequest
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from hmb.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.broker.conftest import Asker

SET, DELETE, APPEND, SUBTRACT = ConfigOperation
TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
Described = DescribeConfigsResponse.DescribeConfigsResult
Entry = Described.DescribeConfigsResourceResult
Changed = IncrementalAlterConfigsRequest.AlterConfigsResource
Altered = AlterConfigsRequest.AlterConfigsResource
Change = tuple[str, int, str | None]


def describe(ask: Asker, type: int, name: str, *names: str, version: int = 4) -> Described:
    wanted = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=type, resource_name=name, configuration_keys=list(names) or None
    )
    request = DescribeConfigsRequest(resources=[wanted])
    request.include_synonyms, request.include_documentation = version >= 1, version >= 3
    return ask(request, version).results[0]  # type: ignore[no-any-return]


def one(ask: Asker, type: int, name: str, config: str) -> Entry:
    (entry,) = describe(ask, type, name, config).configs
    return entry


def change(ask: Asker, type: int, name: str, *changes: Change, validate_only: bool = False) -> int:
    resource = changed(type, name, *changes)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return int(ask(request, 1).responses[0].error_code)


def changed(type: int, name: str, *changes: Change) -> Changed:
    configs = [Changed.AlterableConfig(name=n, config_operation=o, value=v) for n, o, v in changes]
    return Changed(resource_type=type, resource_name=name, configs=configs)


def alter(ask: Asker, type: int, name: str, configs: dict[str, str | None], validate_only: bool = False) -> int:
    values = [Altered.AlterableConfig(name=n, value=v) for n, v in configs.items()]
    resource = Altered(resource_type=type, resource_name=name, configs=values)
    return int(ask(AlterConfigsRequest(resources=[resource], validate_only=validate_only), 2).responses[0].error_code)


@pytest.fixture
def asked(ask: Asker) -> Asker:
    ask.broker.topics.create("t", 2)
    return ask


def test_every_default_of_a_topic_is_returned_with_its_source(asked: Asker) -> None:
    """DescribeConfigs returns each setting of a topic with its value and its source.

    See behavior 5 in test_behaviours.py.
    """
    entries = {entry.name: entry for entry in describe(asked, TOPIC, "t").configs}
    assert len(entries) == 33
    assert all(entry.documentation and entry.config_type for entry in entries.values())
    assert {entry.config_source for entry in entries.values()} == {5}
    assert (entries["cleanup.policy"].value, entries["cleanup.policy"].config_type) == ("delete", 7)
    assert [(s.name, s.value, s.source) for s in entries["max.message.bytes"].synonyms] == [
        ("message.max.bytes", "1048588", 5)
    ]


def test_settings_without_effect_are_stored_and_returned(ask: Asker) -> None:
    configs = {"min.insync.replicas": "2", "unclean.leader.election.enable": "true", "local.retention.ms": "-2"}
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    topic.configs = [topic.CreatableTopicConfig(name=name, value=value) for name, value in configs.items()]
    (answer,) = ask(CreateTopicsRequest(topics=[topic]), 7).topics
    assert answer.error_code == 0
    assert {c.name: c.value for c in answer.configs if c.config_source == 1} == configs
    for name, value in configs.items():
        entry = one(ask, TOPIC, "t", name)
        assert entry.value == value
        assert "no effect" in (entry.documentation or "")


def test_old_clients_get_only_whether_a_value_is_a_default(asked: Asker) -> None:
    change(asked, TOPIC, "t", ("retention.ms", SET, "5"))
    entries = describe(asked, TOPIC, "t", "retention.ms", "flush.ms", version=0).configs
    assert {entry.name: entry.is_default for entry in entries} == {"retention.ms": False, "flush.ms": True}


def test_an_unknown_name_is_left_out_and_an_empty_list_requests_all(asked: Asker) -> None:
    assert [entry.name for entry in describe(asked, TOPIC, "t", "colour", "flush.ms").configs] == ["flush.ms"]
    assert len(describe(asked, TOPIC, "t").configs) == 33
    empty = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=TOPIC, resource_name="t", configuration_keys=[]
    )
    assert len(asked(DescribeConfigsRequest(resources=[empty]), 4).results[0].configs) == 33


@pytest.mark.parametrize(
    ("type", "name", "code"),
    [
        (TOPIC, "nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "1", ErrorCode.INVALID_REQUEST),
        (BROKER, "zero", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (0, "t", ErrorCode.INVALID_REQUEST),
        (99, "t", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_do_not_exist(asked: Asker, type: int, name: str, code: ErrorCode) -> None:
    assert describe(asked, type, name).error_code == code
    as_altered = ErrorCode.INVALID_REQUEST if (type, name) == (TOPIC, "") else code
    assert change(asked, type, name, ("retention.ms", SET, "5")) == as_altered
    assert alter(asked, type, name, {"retention.ms": "5"}) == as_altered


def test_set_and_delete(asked: Asker) -> None:
    assert change(asked, TOPIC, "t", ("retention.ms", SET, "5000"), ("flush.ms", SET, "9")) == 0
    entry = one(asked, TOPIC, "t", "retention.ms")
    assert (entry.value, entry.config_source) == ("5000", 1)
    assert asked.broker.topics.log("t", asked.broker.topics.all()[0].id, 1).config.retention_ms == 5000
    assert change(asked, TOPIC, "t", ("retention.ms", DELETE, None), ("colour", DELETE, None)) == 0
    assert one(asked, TOPIC, "t", "retention.ms").config_source == 5
    assert asked.broker.topics.all()[0].configs == {"flush.ms": "9"}


def test_append_and_subtract(asked: Asker) -> None:
    """APPEND adds to the topic's list, and SUBTRACT removes from it.

    If the topic has no list of its own, both operations start from the default list. The result has no duplicates.
    """
    for operation, value, policy in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact,delete", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "shred", "compact"),
        (SUBTRACT, "compact", ""),
        (APPEND, "delete", "delete"),
    ):
        assert change(asked, TOPIC, "t", ("cleanup.policy", operation, value)) == 0
        assert one(asked, TOPIC, "t", "cleanup.policy").value == policy


def test_a_list_that_grew_above_the_longest_string_is_refused(asked: Asker) -> None:
    """The broker refuses an APPEND that makes a list longer than 32,767 bytes, the limit for a string.

    Before a bug was fixed, the broker accepted the longer list, but could not send it in a DescribeConfigs response.
    """
    name = "leader.replication.throttled.replicas"
    parts = [",".join(f"{number}:{broker}" for number in range(2_000)) for broker in range(3)]
    codes = [change(asked, TOPIC, "t", (name, APPEND, part)) for part in parts]
    assert codes == [0, 0, ErrorCode.INVALID_CONFIG]
    assert one(asked, TOPIC, "t", name).value == ",".join(parts[:2])


def test_replicas_to_throttle_are_a_list(asked: Asker) -> None:
    name = "leader.replication.throttled.replicas"
    for value in ("0:0", "1:0,2:0"):
        assert change(asked, TOPIC, "t", (name, APPEND, value)) == 0
    assert one(asked, TOPIC, "t", name).value == "0:0,1:0,2:0"
    assert change(asked, TOPIC, "t", (name, SET, "*")) == 0
    assert change(asked, TOPIC, "t", (name, SET, "zero")) == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, "-2")], ErrorCode.INVALID_CONFIG),
        ([("segment.bytes", SET, str(2**31))], ErrorCode.INVALID_CONFIG),
        ([("preallocate", SET, "yes")], ErrorCode.INVALID_CONFIG),
        ([("compression.gzip.level", SET, "0")], ErrorCode.INVALID_CONFIG),
        ([("cleanup.policy", SET, "shred")], ErrorCode.INVALID_CONFIG),
        ([("cleanup.policy", APPEND, "")], ErrorCode.INVALID_CONFIG),
        ([("remote.storage.enable", SET, "true")], ErrorCode.INVALID_CONFIG),
        ([("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")], ErrorCode.INVALID_CONFIG),
        ([("colour", SET, "blue")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", APPEND, "5")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 4, "5")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "5"), ("retention.ms", SET, "6")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_wrong_change_changes_nothing(asked: Asker, changes: list[Change], code: ErrorCode) -> None:
    assert change(asked, TOPIC, "t", ("flush.ms", SET, "7"), *changes) == code
    assert asked.broker.topics.all()[0].configs == {}


def test_a_resource_that_is_named_twice_is_refused_both_times(asked: Asker) -> None:
    both = [changed(TOPIC, "t", ("flush.ms", SET, "1")), changed(TOPIC, "t", ("segment.ms", SET, "1"))]
    answers = asked(IncrementalAlterConfigsRequest(resources=both), 1).responses
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2
    assert asked.broker.topics.all()[0].configs == {}


def test_validate_only_finds_mistakes_and_changes_nothing(asked: Asker) -> None:
    assert change(asked, TOPIC, "t", ("retention.ms", SET, "5"), validate_only=True) == 0
    assert alter(asked, TOPIC, "t", {"retention.ms": "5"}, validate_only=True) == 0
    assert change(asked, TOPIC, "t", ("retention.ms", SET, "x"), validate_only=True) == ErrorCode.INVALID_CONFIG
    assert asked.broker.topics.all()[0].configs == {}


def test_alter_configs_resets_settings_that_it_does_not_name(asked: Asker) -> None:
    assert alter(asked, TOPIC, "t", {"retention.ms": "5", "flush.ms": "6"}) == 0
    assert alter(asked, TOPIC, "t", {"flush.ms": "7"}) == 0
    assert asked.broker.topics.all()[0].configs == {"flush.ms": "7"}
    assert alter(asked, TOPIC, "t", {"flush.ms": None}) == ErrorCode.INVALID_REQUEST
    assert alter(asked, LOGGER, "0", {"root": "INFO"}) == ErrorCode.INVALID_REQUEST


def test_altered_settings_survive_a_restart(make_asker: Callable[..., Asker]) -> None:
    ask = make_asker()
    ask.broker.topics.create("t", 1)
    change(ask, TOPIC, "t", ("retention.ms", SET, "5000"))
    change(ask, BROKER, "", ("log.retention.ms", SET, "6000"))
    ask.close()
    stored = json.loads((ask.logs.directory / "topics.json").read_text())
    assert stored["t"]["configs"] == {"retention.ms": "5000"}
    again = make_asker()
    assert one(again, TOPIC, "t", "retention.ms").value == "5000"
    assert one(again, BROKER, "", "log.retention.ms").value == "6000"
    assert again.broker.topics.all()[0].partitions[0].config.retention_ms == 5000


def test_concurrent_changes_all_take_effect(asked: Asker) -> None:
    """If clients append values to the same list setting at the same time, the broker keeps all values.

    For each request, the broker reads the setting's list and replaces it by a longer list. Without a lock, a request
    could remove the value of another request.
    """
    name = "leader.replication.throttled.replicas"

    def append(number: int) -> int:
        another = Asker(asked.broker, asked.dispatcher, asked.logs)  # Each thread has its own client.
        return change(another, TOPIC, "t", (name, APPEND, f"{number}:0"))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(append, range(40))) == {0}
    assert sorted((one(asked, TOPIC, "t", name).value or "").split(",")) == sorted(f"{n}:0" for n in range(40))


@pytest.mark.parametrize(("type", "name", "config"), [(TOPIC, "t", "retention.ms"), (BROKER, "0", "log.retention.ms")])
def test_a_change_that_cannot_be_written_has_no_effect(
    asked: Asker, monkeypatch: pytest.MonkeyPatch, type: int, name: str, config: str
) -> None:
    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    before = one(asked, type, name, config)
    with monkeypatch.context() as patch:
        patch.setattr("hmb.storage.state.manifest.replace_files", full_disk)
        assert change(asked, type, name, (config, SET, "5")) == ErrorCode.KAFKA_STORAGE_ERROR
    assert one(asked, type, name, config) == before
    assert change(asked, type, name, (config, SET, "5")) == 0


def test_a_topic_s_setting_lists_all_its_synonyms(asked: Asker) -> None:
    change(asked, BROKER, "", ("message.max.bytes", SET, "200"))
    change(asked, BROKER, "0", ("message.max.bytes", SET, "300"))
    change(asked, TOPIC, "t", ("max.message.bytes", SET, "400"))
    entry = one(asked, TOPIC, "t", "max.message.bytes")
    assert [(s.name, s.value, s.source) for s in entry.synonyms] == [
        ("max.message.bytes", "400", 1),
        ("message.max.bytes", "300", 2),
        ("message.max.bytes", "200", 3),
        ("message.max.bytes", "1048588", 5),
    ]


def test_a_broker_reports_which_settings_can_change_while_it_runs(asked: Asker) -> None:
    entries = {entry.name: entry for entry in describe(asked, BROKER, "0").configs}
    assert entries["node.id"].read_only and entries["log.retention.hours"].read_only
    assert not entries["log.retention.ms"].read_only and not entries["log.cleaner.backoff.ms"].read_only
    assert describe(asked, BROKER, "").configs == []
    assert change(asked, BROKER, "0", ("node.id", SET, "3")) == ErrorCode.INVALID_REQUEST
    assert change(asked, BROKER, "0", ("log.retention.ms", SET, "x")) == ErrorCode.INVALID_REQUEST


def test_the_rates_of_a_reassignment_are_returned_while_they_are_set(asked: Asker) -> None:
    name = "leader.replication.throttled.rate"
    assert describe(asked, BROKER, "0", name).configs == []
    assert change(asked, BROKER, "0", (name, SET, "1000")) == 0
    assert one(asked, BROKER, "0", name).value == "1000"


def test_unknown_settings_are_treated_as_secrets(asked: Asker) -> None:
    for broker in ("0", ""):
        assert change(asked, BROKER, broker, ("ssl.key.word", SET, "secret")) == 0
        entry = one(asked, BROKER, broker, "ssl.key.word")
        assert (entry.is_sensitive, entry.value, entry.synonyms[0].value) == (True, None, None)


def test_a_group_s_settings_overrule_those_of_the_broker(make_asker: Callable[..., Asker]) -> None:
    def session_timeouts(ask: Asker) -> tuple[int, ...]:
        return tuple(consumer_group_settings(ask.broker.configs, group).session_timeout for group in ("g", "other"))

    name = "consumer.session.timeout.ms"
    ask = make_asker()
    assert (one(ask, GROUP, "g", name).value, one(ask, GROUP, "g", name).config_source) == ("45000", 5)
    assert change(ask, GROUP, "g", (name, SET, "50000")) == 0
    assert [(s.name, s.value, s.source) for s in one(ask, GROUP, "g", name).synonyms] == [
        (name, "50000", 8),
        (f"group.{name}", "45000", 5),
    ]
    assert session_timeouts(ask) == (50_000, 45_000)
    ask.close()
    again = make_asker(group_consumer_session_timeout_ms="46000")
    assert session_timeouts(again) == (50_000, 46_000)
    assert alter(again, GROUP, "g", {}) == 0
    assert session_timeouts(again) == (46_000, 46_000)


def test_the_broker_limits_the_settings_of_a_group(make_asker: Callable[..., Asker]) -> None:
    ask = make_asker(group_consumer_max_session_timeout_ms="70000")
    for name, value, code in (
        ("consumer.session.timeout.ms", "70000", ErrorCode.NONE),
        ("consumer.session.timeout.ms", "70001", ErrorCode.INVALID_CONFIG),
        ("consumer.session.timeout.ms", "44999", ErrorCode.INVALID_CONFIG),
        ("consumer.heartbeat.interval.ms", "soon", ErrorCode.INVALID_CONFIG),
        ("colour", "blue", ErrorCode.INVALID_CONFIG),
    ):
        assert change(ask, GROUP, "g", (name, SET, value), validate_only=True) == code
        assert change(ask, GROUP, "g", (name, SET, value)) == code
    assert ask.broker.configs.altered_of_group("g") == {"consumer.session.timeout.ms": "70000"}


def test_levels_of_loggers(asked: Asker) -> None:
    name = "hmb.broker.network.server"
    logger = logging.getLogger(name)
    try:
        assert change(asked, LOGGER, "0", (name, SET, "DEBUG")) == 0
        assert logger.level == logging.DEBUG
        assert one(asked, LOGGER, "0", name).value == "DEBUG"
        assert change(asked, LOGGER, "0", (name, DELETE, None)) == 0
        assert logger.level == logging.NOTSET
    finally:
        logger.setLevel(logging.NOTSET)
    assert change(asked, LOGGER, "0", (name, SET, "LOUD")) == ErrorCode.INVALID_CONFIG
    assert change(asked, LOGGER, "0", ("no.such.logger", SET, "INFO")) == ErrorCode.INVALID_CONFIG
    assert change(asked, LOGGER, "0", ("root", DELETE, None)) == ErrorCode.INVALID_REQUEST
    assert change(asked, LOGGER, "0", (name, APPEND, "INFO")) == ErrorCode.INVALID_REQUEST
