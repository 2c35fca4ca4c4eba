"""Tests of client telemetry (KIP-714): subscriptions, the checks of pushes, and the lines in the broker's log."""

from __future__ import annotations

import logging
import struct
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hmb
from hmb.broker.telemetry.instances import ClientTelemetry
from hmb.broker.telemetry.metrics_data import MetricValue, decode_metrics
from hmb.broker.telemetry.subscriptions import TelemetryClient
from hmb.client.admin import ConfigResource, ResourceType
from hmb.client.connection import Connection
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from hmb.protocol.messages.push_telemetry import PushTelemetryRequest
from hmb.records import Codec, compress
from hmb.testing.clock import ManualClock

CLIENT = TelemetryClient("", "billing-1", "librdkafka", "2.16.1", "127.0.0.1", "5000")
NEW = UUID(int=0)
ENABLED = {"client.telemetry.enable": "true"}


def field(number: int, content: bytes) -> bytes:
    """Encode a protobuf field that contains bytes. The content must be shorter than 128 bytes."""
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def metric(name: str, kind: int, point: bytes) -> bytes:
    return field(1, field(2, field(2, field(1, name.encode()) + field(kind, field(1, point)))))


LABELS = field(7, field(1, b"node") + field(2, b"\x18\x07")) + field(7, field(1, b"topic") + field(2, field(1, b"t")))
RATE = metric("rate", 5, b"\x21" + struct.pack("<d", 0.5) + LABELS)
METRICS = RATE + metric("total", 7, b"\x31" + struct.pack("<q", 3))


def telemetry(**subscriptions: dict[str, str]) -> ClientTelemetry:
    return ClientTelemetry(lambda: subscriptions)


def refused(code: ErrorCode, function: Any, *arguments: Any) -> None:
    with pytest.raises(KafkaError) as error:
        function(*arguments)
    assert error.value.code is code


def test_matching_subscriptions_are_combined() -> None:
    told = telemetry(
        all={"metrics": "a,b", "interval.ms": "5000"},
        some={"metrics": "b,c", "interval.ms": "1000", "match": "client_software_name=librd.*, client_id=billing-.*"},
        java={"metrics": "d", "interval.ms": "100", "match": "client_software_name=apache-kafka-java"},
    )
    instance_id, requested = told.subscribe(NEW, CLIENT, 0)
    assert instance_id != NEW
    assert (requested.metrics, requested.interval_ms) == (("a", "b", "c"), 1000)
    _, nothing = telemetry().subscribe(NEW, CLIENT, 0)
    assert (nothing.metrics, nothing.interval_ms) == ((), 300_000)
    _, everything = telemetry(one={"metrics": "a"}, two={"metrics": "*"}).subscribe(NEW, CLIENT, 0)
    assert everything.metrics == ("*",)


def test_a_condition_can_name_the_instance() -> None:
    told = telemetry(one={"metrics": "a", "match": f"client_instance_id={UUID(int=77)}"})
    assert told.subscribe(UUID(int=77), CLIENT, 0)[1].metrics == ("a",)
    assert told.subscribe(UUID(int=78), CLIENT, 0)[1].metrics == ()


def test_a_push_may_come_once_in_an_interval() -> None:
    subscriptions = {"one": {"metrics": "a", "interval.ms": "1000"}}
    told = ClientTelemetry(lambda: subscriptions)
    instance, requested = told.subscribe(NEW, CLIENT, 0)
    number = requested.subscription_id
    refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, told.subscribe, instance, CLIENT, 999)
    # After a subscription, the broker accepts one push before the interval of 1,000 ms has passed.
    told.check_push(instance, CLIENT, number, False, 500)
    refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, told.check_push, instance, CLIENT, number, False, 1499)
    refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, told.check_push, instance, CLIENT, number + 1, False, 1500)
    told.check_push(instance, CLIENT, number, False, 2500)
    subscriptions = {"one": {"metrics": "b", "interval.ms": "1000"}}  # The subscription changes.
    refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, told.check_push, instance, CLIENT, number, False, 2501)
    same, changed = told.subscribe(instance, CLIENT, 5000)
    assert (same, changed.metrics) == (instance, ("b",))
    told.check_push(instance, CLIENT, changed.subscription_id, False, 5001)
    # The value True marks the client's final push. The broker accepts it before the interval has passed.
    told.check_push(instance, CLIENT, changed.subscription_id, True, 5002)
    refused(ErrorCode.INVALID_REQUEST, told.check_push, instance, CLIENT, changed.subscription_id, False, 9000)
    refused(ErrorCode.INVALID_REQUEST, told.check_push, NEW, CLIENT, number, False, 9000)


def test_metrics_are_decoded() -> None:
    histogram = metric("latency", 9, b"\x21" + struct.pack("<q", 4) + b"\x29" + struct.pack("<d", 1.5))
    assert decode_metrics(METRICS + histogram) == [
        MetricValue("rate", (("node", "7"), ("topic", "t")), 0.5),
        MetricValue("total", (), 3),
        MetricValue("latency.count", (), 4),
        MetricValue("latency.sum", (), 1.5),
    ]
    assert str(decode_metrics(METRICS)[0]) == "rate{node=7,topic=t} = 0.5"
    assert str(decode_metrics(metric("a\nb", 7, b"\x31" + bytes(8)))[0]) == r"a\nb = 0"


@given(st.binary(max_size=60) | st.integers(0, len(METRICS)).map(lambda end: METRICS[:end] + b"\xff"))
def test_damaged_metrics_are_refused(data: bytes) -> None:
    try:
        decode_metrics(data)
    except KafkaError as error:
        assert error.code is ErrorCode.CORRUPT_MESSAGE


def push(connection: Connection, ids: Any, data: bytes, codec: int = Codec.NONE) -> int:
    request = PushTelemetryRequest(
        client_instance_id=ids.client_instance_id,
        subscription_id=ids.subscription_id,
        compression_type=codec,
        metrics=data,
    )
    return int(connection.send(request).error_code)


def test_metrics_are_written_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    with hmb.Broker(config=ENABLED | {"telemetry.max.bytes": "1000"}, clock=clock) as broker:
        with hmb.Admin(broker.bootstrap_servers) as admin:
            resource = ConfigResource(ResourceType.CLIENT_METRICS, "all")
            admin.alter_configs(resource, set={"metrics": "*", "interval.ms": "100"})
        (address,) = broker.bootstrap_servers.split(",")
        with Connection(*address.split(":"), "tester") as connection:  # type: ignore[arg-type]
            ids = connection.send(GetTelemetrySubscriptionsRequest())
            assert (ids.requested_metrics, ids.push_interval_ms, ids.telemetry_max_bytes) == (["*"], 100, 1000)
            assert push(connection, ids, compress(Codec.ZSTD, METRICS), Codec.ZSTD) == ErrorCode.NONE
            assert push(connection, ids, METRICS) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            for data, codec, code in (
                (METRICS, 9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
                (bytes(1001), Codec.NONE, ErrorCode.TELEMETRY_TOO_LARGE),
                (METRICS[:-1], Codec.NONE, ErrorCode.INVALID_RECORD),
                (METRICS, Codec.GZIP, ErrorCode.INVALID_RECORD),
                (METRICS, Codec.NONE, ErrorCode.NONE),
            ):
                clock.advance(seconds=1)
                assert push(connection, ids, data, codec) == code
    lines = [record.getMessage() for record in caplog.records if "telemetry of instance" in record.getMessage()]
    assert [line.partition(": ")[2] for line in lines] == ["rate{node=7,topic=t} = 0.5", "total = 3"] * 2
    assert "telemetry of client 'tester'" in caplog.text


def test_the_apis_are_offered_only_if_telemetry_is_enabled() -> None:
    telemetry_keys = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    for config, expected in (({}, set()), (ENABLED, telemetry_keys)):
        with hmb.Broker(config=config) as broker, hmb.Admin(broker.bootstrap_servers) as admin:
            (versions,) = admin.describe_versions().values()
            assert versions.apis.keys() & telemetry_keys == expected


def test_subscriptions_are_settings_that_survive_a_restart() -> None:
    resource = ConfigResource(ResourceType.CLIENT_METRICS, "slow")
    with hmb.Broker() as broker:
        for _ in range(2):
            with hmb.Admin(broker.bootstrap_servers) as admin:
                admin.alter_configs(resource, set={"metrics": "a,b", "match": "client_id=x.*"})
                entries = admin.describe_configs([resource])[resource]
                assert not isinstance(entries, KafkaError)
                assert {name: (entry.value, entry.source.name) for name, entry in entries.items()} == {
                    "metrics": ("a,b", "DYNAMIC_CLIENT_METRICS_CONFIG"),
                    "match": ("client_id=x.*", "DYNAMIC_CLIENT_METRICS_CONFIG"),
                    "interval.ms": ("300000", "DEFAULT_CONFIG"),
                }
            broker.restart()
        with hmb.Admin(broker.bootstrap_servers) as admin:
            for match in ("client_id", "client_id=(", "x=y"):
                refused(ErrorCode.INVALID_CONFIG, partial(admin.alter_configs, resource, set={"match": match}))
            for interval in ("99", "3600001"):
                change = {"interval.ms": interval}
                refused(ErrorCode.INVALID_REQUEST, partial(admin.alter_configs, resource, set=change))
