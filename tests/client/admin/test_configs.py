"""Tests that `Admin` reads settings, and changes them with IncrementalAlterConfigs or the older AlterConfigs."""

from __future__ import annotations

import logging

import pytest

from hmb.client.admin import (
    ALL_BROKERS,
    Admin,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConfigSynonym,
    NewTopic,
    ResourceType,
    raised,
)
from hmb.client.admin.configs import ConfigChange
from hmb.protocol.enums import ConfigOperation
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from hmb.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from hmb.protocol.schema import Request, Response
from tests.client.scripted_broker import ScriptedBroker

TOPIC = ConfigResource(ResourceType.TOPIC, "t")


def entries(admin: Admin, resource: ConfigResource, *names: str) -> dict[str, ConfigEntry]:
    return raised(admin.describe_configs([resource], names=names or None)[resource])


def test_a_value_has_a_source_and_synonyms(servers: str) -> None:
    with Admin(servers) as admin:
        admin.create_topics([NewTopic("t", configs={"retention.ms": "1000"})])
        admin.alter_configs(ConfigResource(ResourceType.BROKER, ALL_BROKERS), set={"log.retention.ms": "5000"})
        entry = entries(admin, TOPIC, "retention.ms")["retention.ms"]
        assert (entry.value, entry.source, entry.type) == ("1000", ConfigSource.DYNAMIC_TOPIC_CONFIG, "long")
        assert entry.synonyms[:2] == (
            ConfigSynonym("retention.ms", "1000", ConfigSource.DYNAMIC_TOPIC_CONFIG),
            ConfigSynonym("log.retention.ms", "5000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        )
        admin.alter_configs(TOPIC, delete=["retention.ms"])
        assert entries(admin, TOPIC)["retention.ms"].source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        admin.alter_configs(ConfigResource(ResourceType.BROKER, ALL_BROKERS), delete=["log.retention.ms"])
        assert entries(admin, TOPIC)["retention.ms"].source is ConfigSource.DEFAULT_CONFIG
        admin.delete_topics(["t"])


def test_an_unknown_setting_of_a_topic_changes_nothing(servers: str) -> None:
    with Admin(servers) as admin:
        admin.create_topics(["t"])
        for delete in (["flush.mss"], ["nonsense"]):
            with pytest.raises(KafkaError, match="a topic has no setting") as caught:
                admin.alter_configs(TOPIC, set={"flush.ms": "1"}, delete=delete)
            assert caught.value.code is ErrorCode.INVALID_CONFIG
        assert entries(admin, TOPIC)["flush.ms"].source is ConfigSource.DEFAULT_CONFIG
        admin.delete_topics(["t"])
        with pytest.raises(KafkaError, match="there is no topic 't'"):
            admin.alter_configs(TOPIC, set={"flush.ms": "1"})


class OldBroker:
    """A broker like Kafka 2.2, which does not have IncrementalAlterConfigs."""

    def __init__(self, **own: str) -> None:
        self.own = {name.replace("_", "."): value for name, value in own.items()}
        self.hidden: set[str] = set()
        self.written: list[dict[str, str | None]] = []

    def __call__(self, request: Request, version: int) -> Response:
        if isinstance(request, DescribeConfigsRequest):
            result = DescribeConfigsResponse.DescribeConfigsResult(resource_type=2, resource_name="t")
            known = {"a": "1", "b": "2", "list": "x,y"} | self.own
            for name, value in known.items():
                result.configs.append(
                    result.DescribeConfigsResourceResult(
                        name=name,
                        value=None if name in self.hidden else value,
                        config_source=1 if name in self.own else 5,
                        is_sensitive=name in self.hidden,
                    )
                )
            return DescribeConfigsResponse(results=[result])
        assert isinstance(request, AlterConfigsRequest)
        self.written.append({it.name: it.value for it in request.resources[0].configs})
        answer = AlterConfigsResponse.AlterConfigsResourceResponse(resource_type=2, resource_name="t")
        return AlterConfigsResponse(responses=[answer])

    def serve(self) -> ScriptedBroker:
        return ScriptedBroker(self, {IncrementalAlterConfigsRequest: -1})


def test_an_old_broker_gets_all_settings_again_and_a_warning_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    old = OldBroker(b="20")
    with old.serve() as broker, Admin(broker.address) as admin, caplog.at_level(logging.WARNING):
        admin.alter_configs(TOPIC, set={"a": "10"})
        assert old.written == [{"a": "10", "b": "20"}]
        admin.alter_configs(TOPIC, delete=["b"], append={"list": "z"})
        assert old.written[1:] == [{"list": "x,y,z"}]
        admin.alter_configs(TOPIC, subtract={"list": "x"})
        assert old.written[2:] == [{"b": "20", "list": "y"}]
    assert "older than Kafka 2.3 and cannot change single settings" in caplog.messages[0]
    assert "so the client writes all settings of topic 't' again" in caplog.messages[0]


def test_on_an_old_broker_a_secret_setting_is_not_lost() -> None:
    old = OldBroker(b="20")
    old.hidden = {"b"}
    with old.serve() as broker, Admin(broker.address) as admin:
        settings = {"a": "10"}
        with pytest.raises(KafkaError, match="cannot read the values of b"):
            admin.alter_configs(TOPIC, set=settings)
    assert old.written == []


@pytest.mark.parametrize(
    ("operation", "value", "before", "after"),
    [
        (ConfigOperation.SET, "a,b", "x", "a,b"),
        (ConfigOperation.DELETE, None, "x", None),
        (ConfigOperation.APPEND, "b,c", "a,b", "a,b,c"),
        (ConfigOperation.APPEND, "b", None, "b"),
        (ConfigOperation.SUBTRACT, "b,c", "a,b", "a"),
        (ConfigOperation.SUBTRACT, "b", None, ""),
    ],
)
def test_changes(operation: ConfigOperation, value: str | None, before: str | None, after: str | None) -> None:
    assert ConfigChange("list", operation, value).applied_to(before) == after
