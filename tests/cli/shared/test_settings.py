"""Tests of settings with durations and sizes: `retention.ms=1h`, `segment.bytes=1MiB`."""

import click
import pytest

from hmb.cli.cluster.configs import changes
from hmb.cli.shared.settings import setting
from hmb.client import Admin
from hmb.client.admin import ConfigResource, ResourceType, raised
from hmb.units import plain_value
from tests.cli.conftest import Hmb


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("retention.ms=1h", "3600000"),
        ("retention.ms=1h30m", "5400000"),
        ("retention.ms=0.5s", "500"),
        ("retention.ms=7d", "604800000"),
        ("retention.ms=3600000", "3600000"),
        ("retention.ms=-1", "-1"),
        ("log.retention.minutes=2h", "120"),
        ("log.retention.hours=1w", "168"),
        ("segment.bytes=1MiB", "1048576"),
        ("segment.bytes=1.5KiB", "1536"),
        ("segment.bytes=1 GB", "1000000000"),
        ("segment.bytes=10B", "10"),
        ("batch.size=16KiB", "16384"),
        ("buffer.memory=32MiB", "33554432"),
        ("max.request.size=2MB", "2000000"),
        ("log.cleaner.io.max.bytes.per.second=1kB", "1000"),
        ("log.cleaner.dedupe.buffer.size=1TiB", "1099511627776"),
        ("cleanup.policy=compact", "compact"),
        ("client.id=1h", "1h"),
        ("group.max.size=1MiB", "1MiB"),
        ("segment.bytes=1h", "1h"),
        ("retention.ms=1MiB", "1MiB"),
        ("retention.ms=soon", "soon"),
    ],
)
def test_a_value_with_a_unit_becomes_kafkas_number(text: str, value: str) -> None:
    assert setting(text) == (text.partition("=")[0], value)


def test_a_duration_that_the_setting_cannot_express() -> None:
    with pytest.raises(ValueError, match="the value must be a whole number of hours"):
        plain_value("log.retention.hours", "90m")
    with pytest.raises(click.BadParameter, match="=90m': the value must be a whole number of hours"):
        setting("log.retention.hours=90m")


def test_changes_of_kafka_configs_have_units_too() -> None:
    assert changes("retention.ms=1h,cleanup.policy=[delete,compact],segment.bytes=1MiB") == [
        ("retention.ms", "3600000"),
        ("cleanup.policy", "delete,compact"),
        ("segment.bytes", "1048576"),
    ]
    with pytest.raises(click.BadParameter, match="the value must be a whole number of hours"):
        changes("log.retention.hours=90m")


def test_a_retention_time_may_have_any_unit(run: Hmb, servers: str) -> None:
    at = ("-b", servers)
    run("topics", "create", "units", "-c", "retention.ms=1h", "--config", "segment.bytes=1MiB", *at)

    def configs() -> dict[str, str | None]:
        resource = ConfigResource(ResourceType.TOPIC, "units")
        with Admin(servers) as admin:
            entries = raised(admin.describe_configs([resource])[resource]).values()
        return {entry.name: entry.value for entry in entries if entry.source is resource.own_source}

    assert configs() == {"retention.ms": "3600000", "segment.bytes": "1048576"}
    run("topics", "alter", "units", "-c", "retention.ms=2h", *at)
    run("configs", "alter", "--topic", "units", "--add-config", "segment.bytes=2MiB,flush.ms=1s", *at)
    assert configs() == {"retention.ms": "7200000", "segment.bytes": "2097152", "flush.ms": "1000"}


def test_settings_of_a_client_have_units(run: Hmb, servers: str) -> None:
    options = ("-X", "linger.ms=0.01s", "-X", "batch.size=1KiB", "-X", "delivery.timeout.ms=1m")
    run("produce", "client-units", *options, "-b", servers, stdin="x\n")
    error = run("produce", "t", "-X", "linger.ms=1x", "-b", servers, exit_code=2).stderr
    assert error == "hmb: -X linger.ms=1x: the value must be a number\n"
