"""Tests of settings altered while the broker runs: their sources, their effect, and their values after a restart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hmb.broker.config.dynamic import DynamicConfig
from hmb.broker.config.store import ConfigStore
from hmb.protocol.enums import ALL_BROKERS, ConfigSource
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.state.identity import DataDirectoryError
from hmb.storage.state.manifest import Manifest
from tests.broker.conftest import Asker
from tests.storage.conftest import batch

Make = Callable[..., DynamicConfig]
OWN, ALL, STATIC, DEFAULT = (
    ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    ConfigSource.STATIC_BROKER_CONFIG,
    ConfigSource.DEFAULT_CONFIG,
)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that creates a broker's settings from properties. All calls use the same directory."""
    def make(**given: str) -> DynamicConfig:
        properties = {name.replace("_", "."): value for name, value in given.items()}
        return DynamicConfig(properties, ConfigStore(tmp_path, Manifest(tmp_path)))

    return make


def places(config: DynamicConfig, name: str) -> list[tuple[str, str | None, ConfigSource]]:
    return [tuple(synonym) for synonym in config.synonyms(name)]  # type: ignore[misc]


def test_the_most_specific_source_wins_and_all_sources_are_listed(make: Make) -> None:
    config = make(message_max_bytes="1000")
    name = "message.max.bytes"
    config.alter(ALL_BROKERS, {name: "2000"})
    config.alter("0", {name: "3000"})
    assert config.current.log.max_message_bytes == 3000
    assert places(config, name) == [
        (name, "3000", OWN),
        (name, "2000", ALL),
        (name, "1000", STATIC),
        (name, "1048588", DEFAULT),
    ]
    config.alter("0", {})
    assert (config.current.log.max_message_bytes, config.value(name)) == (2000, "2000")


def test_finer_synonyms_of_a_time_setting_are_not_listed(make: Make) -> None:
    config = make(log_retention_hours="5")
    assert config.current.log.retention_ms == 5 * 60 * 60 * 1000
    assert places(config, "log.retention.ms") == []
    assert places(config, "log.retention.hours") == [
        ("log.retention.hours", "5", STATIC),
        ("log.retention.hours", "168", DEFAULT),
    ]
    config.alter("0", {"log.retention.ms": "7"})
    assert config.current.log.retention_ms == 7
    assert places(config, "log.retention.ms")[0] == ("log.retention.ms", "7", OWN)


def test_a_broker_s_id_is_returned_under_both_names(make: Make) -> None:
    config = make(node_id="7")
    assert (config.name, config.value("broker.id"), config.value("node.id")) == ("7", "7", "7")


def test_altered_settings_survive_a_restart(make: Make, tmp_path: Path) -> None:
    make().alter("0", {"log.retention.ms": " 60000 "})
    make().alter(ALL_BROKERS, {"log.cleanup.policy": "compact, delete"})
    again = make(log_retention_ms="1")
    assert again.current.log.retention_ms == 60_000
    assert json.loads((tmp_path / "configs.json").read_text())["brokers"] == {
        "": {"log.cleanup.policy": "compact,delete"},
        "0": {"log.retention.ms": "60000"},
    }


@pytest.mark.parametrize(
    "configs",
    [
        {"log.retention.ms": "soon"},
        {"message.max.bytes": "-1"},
        {"node.id": "1"},
        {"log.retention.hours": "1"},  # This setting is read-only in Kafka, too.
        {"log.retention.ms": "1", "log.dirs": "/elsewhere"},
    ],
)
@pytest.mark.parametrize("broker", ["0", ALL_BROKERS])
def test_an_invalid_change_is_refused_and_changes_nothing(make: Make, configs: dict[str, str], broker: str) -> None:
    config = make()
    with pytest.raises(KafkaError) as refused:
        config.alter(broker, configs)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert config.altered(broker) == make().altered(broker) == {}


def test_a_bad_value_for_all_brokers_is_refused_where_this_one_has_its_own(make: Make) -> None:
    config = make()
    config.alter("0", {"log.retention.ms": "5"})
    with pytest.raises(KafkaError):
        config.alter(ALL_BROKERS, {"log.retention.ms": "soon"})


def test_validate_only_changes_nothing(make: Make) -> None:
    config = make()
    config.alter("0", {"log.retention.ms": "5"}, validate_only=True)
    assert config.current.log.retention_ms == 7 * 24 * 60 * 60 * 1000
    assert config.altered("0") == {}


def test_a_listener_is_called_now_and_at_each_change(make: Make) -> None:
    config = make()
    rates: list[float] = []
    config.listen(lambda current: rates.append(current.cleaner_rate))
    config.alter("0", {"log.cleaner.io.max.bytes.per.second": "1000"})
    config.alter("0", {})
    assert rates[1:] == [1000.0, rates[0]]


def test_an_unknown_setting_is_stored_and_reported_as_without_effect(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    config = make()
    config.alter("0", {"log.retention.mss": "5"})
    assert "did you mean 'log.retention.ms'?" in caplog.text
    assert config.altered("0") == {"log.retention.mss": "5"}


@pytest.mark.parametrize(
    "text", ["", "[]", '{"brokers": {"0": 1}}', '{"brokers": {"0": {"log.retention.ms": "soon"}}}']
)
def test_a_damaged_file_of_settings_is_named(make: Make, tmp_path: Path, text: str) -> None:
    (tmp_path / "configs.json").write_text(text)
    with pytest.raises(DataDirectoryError, match=r"configs\.json"):
        make()


def test_logs_use_a_new_default_at_once_unless_their_topic_overrides_it(ask: Asker) -> None:
    says = ask.broker.topics.create("says", 1, {"max.message.bytes": "5000"}).partitions[0]
    says_not = ask.broker.topics.create("says-not", 1).partitions[0]
    ask.broker.configs.alter("0", {"message.max.bytes": "70"})
    for log, is_refused in ((says, False), (says_not, True)):
        if is_refused:
            with pytest.raises(KafkaError) as refused:
                log.append(batch(1))
            assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
        else:
            log.append(batch(1))
    ask.broker.configs.alter("0", {})
    says_not.append(batch(1))


def test_an_active_segment_uses_new_settings(ask: Asker) -> None:
    topic = ask.broker.topics.create("t", 1)
    log = topic.partitions[0]
    log.append(batch(1))
    ask.broker.topics.alter_configs([(topic, {"segment.bytes": "100"})])
    log.append(batch(1))
    assert len(log.segments) == 2


def test_settings_of_any_number_and_length_filled_the_memory(make: Make) -> None:
    config = make()
    config.alter("0", {f"unknown.{number}": "v" * 30_000 for number in range(30)})
    with pytest.raises(KafkaError, match="more than 1048576 characters in total"):
        config.alter("0", {f"unknown.{number}": "v" * 30_000 for number in range(40)})
    assert len(config.altered("0")) == 30


def test_names_of_groups_with_settings_filled_the_memory(make: Make) -> None:
    config = make()
    groups = {f"{number}{'g' * 30_000}": {"consumer.session.timeout.ms": "50000"} for number in range(40)}
    with pytest.raises(KafkaError, match="more than 1048576 characters in total"):
        config.alter_groups(groups)
    assert config.altered_of_group("0" + "g" * 30_000) == {}


def test_a_default_that_differs_from_kafka_s_is_a_value_of_the_start(make: Make) -> None:
    name = "max.connections"
    config = make()
    assert places(config, name) == [(name, "4096", STATIC), (name, "2147483647", DEFAULT)]
    assert (config.current.limits.max_connections, config.value(name)) == (4096, "4096")
    config.alter("0", {name: "7"})
    assert [source for _, _, source in places(config, name)] == [OWN, STATIC, DEFAULT]
    config.alter("0", {})
    assert config.current.limits.max_connections == 4096
    assert places(make(max_connections="9"), name)[0] == (name, "9", STATIC)
    assert places(config, "process.roles") == [("process.roles", "broker,controller", STATIC)]


def test_a_default_that_only_hmb_has_is_a_default(make: Make) -> None:
    assert places(make(), "threading") == [("threading", "connection", DEFAULT)]
