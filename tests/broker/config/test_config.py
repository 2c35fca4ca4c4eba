"""Tests of the broker's settings: units of time, warnings about unknown settings, and errors of invalid values."""

import pytest

from hmb.broker import BrokerServer
from hmb.broker.config.broker import BrokerConfig, log_config
from hmb.broker.config.keys import ConfigError
from hmb.broker.config.names import environment_properties, unknown_names, unknown_variables
from hmb.broker.network.listeners import BindError, parse_listeners
from hmb.records import Codec
from hmb.storage.config import CODECS, LogConfig

HOUR = 60 * 60 * 1000


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 2 * HOUR),
        ({"log.retention.minutes": "3"}, 3 * 60 * 1000),
        ({"log.retention.minutes": "3", "log.retention.hours": "2"}, 3 * 60 * 1000),
        ({"log.retention.ms": "5", "log.retention.minutes": "3", "log.retention.hours": "2"}, 5),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-1", "log.retention.hours": "2"}, -1),
    ],
)
def test_of_several_settings_for_one_time_the_finest_unit_wins(properties: dict[str, str], retention_ms: int) -> None:
    """The setting with the finest unit of time wins.

    Before a bug was fixed, the broker ignored log.retention.hours and log.retention.minutes, and kept records for seven
    days.
    """
    assert BrokerConfig.from_properties(properties).log.retention_ms == retention_ms
    assert unknown_names(properties) == []


def test_segments_roll_after_hours_or_milliseconds() -> None:
    assert BrokerConfig.from_properties({"log.roll.hours": "1"}).log.segment_ms == HOUR
    assert BrokerConfig.from_properties({"log.roll.ms": "7", "log.roll.hours": "1"}).log.segment_ms == 7
    assert environment_properties({"HMB_LOG_ROLL_HOURS": "1"}) == {"log.roll.hours": "1"}


def test_segments_roll_earlier_by_hours_or_milliseconds() -> None:
    properties = {"log.roll.jitter.hours": "2"}
    assert BrokerConfig.from_properties(properties).log.segment_jitter_ms == 2 * HOUR
    assert BrokerConfig.from_properties({"log.roll.jitter.ms": "5", **properties}).log.segment_jitter_ms == 5


def test_a_topic_may_keep_nothing() -> None:
    """As in Kafka 4.3, a topic's retention.ms may be 0, but the broker's setting log.retention.ms must not be 0."""
    assert log_config({"retention.ms": "0"}, LogConfig()).retention_ms == 0


def test_the_limit_of_decompression_is_a_broker_setting_and_not_a_topic_setting() -> None:
    broker = BrokerConfig.from_properties({"max.decompressed.message.bytes": "5000"})
    assert broker.log.max_decompressed == log_config({"segment.bytes": "100"}, broker.log).max_decompressed == 5000
    assert BrokerConfig.from_properties({}).log.max_decompressed == 32 * 2**20
    with pytest.raises(ConfigError, match="unknown topic config"):
        log_config({"max.decompressed": "6000"}, broker.log)


def test_compression_has_a_codec_and_its_level() -> None:
    assert (LogConfig().codec, LogConfig().level) == (None, None)
    levels = {"compression.gzip.level": "4", "compression.lz4.level": "5", "compression.zstd.level": "-6"}
    configs = [log_config({"compression.type": name, **levels}, LogConfig()) for name in CODECS]
    assert [(config.codec, config.level) for config in configs] == [
        (Codec.NONE, None),
        (Codec.GZIP, 4),
        (Codec.SNAPPY, None),
        (Codec.LZ4, 5),
        (Codec.ZSTD, -6),
    ]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("log.retention.hours", "soon", "the value must be a whole number"),
        ("log.retention.minutes", "-2", "the value must be at least -1"),
        ("log.roll.hours", "0", "the value must be at least 1"),
        ("log.roll.hours", str(2**62), f"the value must be at most {(2**63 - 1) // HOUR}"),
        ("log.segment.bytes", "abc", "the value must be a whole number"),
        ("log.retention.hours", "0", "the value must be at least 1, or -1 to keep records forever"),
        ("log.retention.ms", "0", "the value must be at least 1, or -1 to keep records forever"),
        ("log.roll.jitter.hours", "-1", "the value must be at least 0"),
        ("log.preallocate", "yes", "the value must be true or false"),
        ("log.message.timestamp.after.max.ms", "-1", "the value must be at least 0"),
        ("compression.type", "none", "the value must be one of producer, uncompressed, gzip, snappy, lz4, zstd"),
        ("compression.gzip.level", "0", "the value must be one of -1, 1, 2, 3, 4, 5, 6, 7, 8, 9"),
        ("compression.gzip.level", "10", "the value must be at most 9"),
        ("compression.lz4.level", "18", "the value must be at most 17"),
        ("compression.zstd.level", "-131073", "the value must be at least -131072"),
    ],
)
def test_a_wrong_value_is_reported_with_the_name_that_the_user_wrote(name: str, value: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        BrokerConfig.from_properties({name: value})
    assert str(raised.value) == f"{name}={value}: {problem}"
    assert raised.value.name == name


def test_unknown_settings_are_named_with_the_nearest() -> None:
    assert unknown_names(["log.retention.hour", "xyzzy", "num.partitions"]) == [
        "unknown setting 'log.retention.hour' is ignored, did you mean 'log.retention.hours'?",
        "unknown setting 'xyzzy' is ignored",
    ]
    variables = ["HMB_LOG_SEGMENT_BYTE", "HMB_NUM_PARTITIONS", "HMB_KAFKA_43", "LOG_SEGMENT_BYTE"]
    assert unknown_variables(variables) == [
        "unknown setting 'HMB_LOG_SEGMENT_BYTE' is ignored, did you mean 'HMB_LOG_SEGMENT_BYTES'?"
    ]


def test_an_empty_data_directory_is_not_the_current_one() -> None:
    """The broker refuses an empty string as the name of its data directory.

    Before a bug was fixed, an empty string meant the current directory. Recovery then truncated a file in this
    directory as if the file were a log file.
    """
    for arguments in ({"data_dir": ""}, {"config": {"log.dirs": ""}}, {"config": {"log.dir": ""}}):
        with pytest.raises(ConfigError, match=r"name (a|one) directory"):
            BrokerServer(**arguments)


def test_an_unknown_host_is_reported_as_unknown() -> None:
    for host in ("no.such.invalid", "a..b"):
        with pytest.raises(BindError, match=f"cannot resolve '{host}'"):
            BrokerServer(host=host).start()


def test_the_error_of_an_unusable_address_contains_advice() -> None:
    with BrokerServer() as broker:
        port = broker.listeners[0].port
        with pytest.raises(BindError, match=r"Address already in use; .* --port"):
            BrokerServer(port=port).start()
    with pytest.raises(BindError, match="choose an address of this machine"):
        BrokerServer(host="192.0.2.1", config={"allow.unauthenticated": "true"}).start()


def test_all_addresses_without_one_to_advertise_get_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    parse_listeners(BrokerConfig.from_properties({"listeners": "PLAINTEXT://0.0.0.0:0"}))
    (record,) = caplog.records
    assert "set advertised.listeners=PLAINTEXT://host:port" in record.getMessage()
    caplog.clear()
    properties = {"listeners": "PLAINTEXT://0.0.0.0:0", "advertised.listeners": "PLAINTEXT://a.example:1"}
    parse_listeners(BrokerConfig.from_properties(properties))
    parse_listeners(BrokerConfig.from_properties({"listeners": "PLAINTEXT://127.0.0.1:0"}))
    assert caplog.records == []
