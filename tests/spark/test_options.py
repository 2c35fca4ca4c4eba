"""Tests of the options of the data source: the meaning of each option, and the error message for each mistake."""

import pytest

from hmb.spark.bounds import Times
from hmb.spark.kafka_names import JAVA_SETTINGS
from hmb.spark.option_names import COLUMN_NAMES
from hmb.spark.options import OptionError, sink_options, source_options

HERE = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
T = {**HERE, "subscribe": "t"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "use CREATE TEMPORARY VIEW ... USING hmb instead"),
        (HERE, "one of the following options must be specified: assign, subscribe, subscribePattern"),
        ({"subscribe": "t"}, "option 'kafka.bootstrap.servers' must be specified"),
        ({**T, "assign": '{"t": [0]}'}, "only one of these options can be specified, not assign and subscribe"),
        ({**HERE, "subscribe": " , "}, "option 'subscribe' does not name a topic"),
        ({**HERE, "subscribePattern": " "}, "option 'subscribePattern' is empty"),
        ({**HERE, "subscribePattern": "("}, "is not a regular expression"),
        ({**HERE, "assign": "t"}, "option 'assign': expected e.g."),
        ({**HERE, "assign": '{"t": ["0"]}'}, "option 'assign': expected e.g."),
        ({**T, "startingOffsets": "latest"}, "startingOffsets can't be latest for batch queries"),
        ({**T, "startingOffsets": '{"t": {"0": -1}}'}, "startingOffsets can't be latest (-1) for a partition of t"),
        ({**T, "endingOffsets": "earliest"}, "endingOffsets can't be earliest"),
        ({**T, "endingOffsets": '{"t": {"0": -2}}'}, "endingOffsets can't be earliest (-2) for a partition of t"),
        ({**T, "startingOffsets": "{"}, "option 'startingOffsets': expected e.g."),
        ({**T, "startingOffsets": '{"t": {"0": -3}}'}, "option 'startingOffsets': expected e.g."),
        ({**T, "startingTimestamp": "yesterday"}, "option 'startingTimestamp': 'yesterday' is not a time"),
        ({**T, "endingOffsetsByTimestamp": "17"}, "option 'endingOffsetsByTimestamp': expected e.g."),
        ({**T, "startingOffsetsByTimestampStrategy": "guess"}, "must be 'error' or 'latest', not 'guess'"),
        (
            {**T, "startingOffsets": '{"t": {"0": 9}}', "endingOffsets": '{"t": {"0": 5}}'},
            "startingOffsets is after endingOffsets: t-0 starts at 9 and ends at 5",
        ),
        (
            {**T, "startingOffsets": '{"t": {"0": 1}}', "endingOffsets": '{"t": {"1": 5}}'},
            "startingOffsets and endingOffsets name different partitions",
        ),
        (
            {
                **T,
                "startingOffsetsByTimestamp": '{"t": {"0": 9}}',
                "endingOffsetsByTimestamp": '{"t": {"0": 5}}',
            },
            "startingOffsetsByTimestamp is after endingOffsetsByTimestamp",
        ),
        ({**T, "minPartitions": "0"}, "option 'minPartitions' must be a whole number of at least 1, not '0'"),
        ({**T, "maxRecordsPerPartition": "many"}, "option 'maxRecordsPerPartition' must be a whole number"),
        ({**T, "columns": "key,offsets"}, "option 'columns': 'offsets' is not one of key, value, topic,"),
        ({**T, "columns": ""}, "option 'columns': '' is not one of key, value"),
        ({**T, "columns": "key,key"}, "option 'columns' contains 'key' more than once"),
        ({**T, "columns": "key", "includeHeaders": "true"}, "option 'columns' does not contain headers"),
        ({**T, "maxLateness": "soon"}, "option 'maxLateness' must be a duration such as 15m"),
        ({**T, "failOnDataLoss": "perhaps"}, "option 'failOnDataLoss' must be true or false, not 'perhaps'"),
        ({**T, "maxTriggerDelay": "soon"}, "option 'maxTriggerDelay' must be a duration such as 15m"),
        ({**T, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, "minOffsetsPerTrigger, 9, is larger than"),
        ({**T, "startingOfsets": "earliest"}, "unknown option 'startingOfsets'; did you mean 'startingOffsets'?"),
        (
            {**T, "kafka.isolation_level": "read_committed"},
            "unknown option 'kafka.isolation_level'; did you mean 'kafka.isolation.level'?",
        ),
        ({**T, "kafka.ssl.truststore.lokation": "x"}, "did you mean 'kafka.ssl.truststore.location'?"),
        ({**T, "kafka.auto.offset.reset": "earliest"}, "Instead set the source option 'startingOffsets'"),
        ({**T, "kafka.key.deserializer": "x"}, "Use DataFrame operations to explicitly deserialize"),
        ({**T, "kafka.enable.auto.commit": "true"}, "option 'kafka.enable.auto.commit' is not supported"),
        ({**T, "kafka.interceptor.classes": "x"}, "option 'kafka.interceptor.classes' is not supported"),
        ({**T, "kafka.isolation.level": "read_all"}, "option 'kafka.isolation.level' must be one of"),
        ({**T, "kafka.fetch.min.bytes": "few"}, "option kafka.fetch.min.bytes=few: the value must be a whole number"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        source_options(options, streaming=False)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    value = {"endingOffsets": "latest", "endingTimestamp": "1"}.get(name, '{"t": {"0": 1}}')
    with pytest.raises(OptionError, match=f"option '{name}' is not valid in streaming queries"):
        source_options({**T, name: value}, streaming=True)


def test_defaults_are_the_connectors() -> None:
    batch, stream = source_options(T, streaming=False), source_options(T, streaming=True)
    assert (batch.starting, batch.ending, stream.starting) == ("earliest", "latest", "latest")
    assert batch.fail_on_data_loss and batch.columns == COLUMN_NAMES and batch.time_strategy == "error"
    assert stream.max_trigger_delay == 900 and stream.max_offsets is None and stream.group is None


def test_case_does_not_matter() -> None:
    given = {"KAFKA.Bootstrap.Servers": "h:1", "SUBSCRIBE": "a, b,", "startingoffsets": "EARLIEST"}
    options = source_options(given, streaming=True)
    assert options.bootstrap_servers == "h:1"
    assert options.subscribe == ("a", "b")
    assert options.starting == "earliest"


def test_a_time_takes_precedence_over_times_by_partition_and_these_over_offsets() -> None:
    given = {**T, "startingOffsets": '{"t": {"0": 5}}'}
    assert source_options(given, streaming=True).starting == {"t": {0: 5}}
    given["startingOffsetsByTimestamp"] = '{"t": {"0": 6}}'
    assert source_options(given, streaming=True).starting == Times(by_partition={"t": {0: 6}})
    given["startingTimestamp"] = "7"
    assert source_options(given, streaming=True).starting == Times(of_all=7)


def test_columns() -> None:
    def columns(**given: str) -> tuple[str, ...]:
        return source_options({**T, **given}, streaming=False).columns

    assert columns() == COLUMN_NAMES
    assert columns(includeHeaders="true") == (*COLUMN_NAMES, "headers")
    assert columns(columns="offset, key,headers") == ("offset", "key", "headers")


@pytest.mark.parametrize(
    ("text", "seconds"), [("15m", 900), ("30s", 30), ("500ms", 0.5), ("1h", 3600), ("200", 0.2), ("0s", 0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert source_options({**T, "maxTriggerDelay": text}, streaming=True).max_trigger_delay == seconds


def test_kafka_settings_are_passed_to_the_client() -> None:
    given = {**T, "kafka.isolation.level": "read_committed", "kafka.fetch.max.bytes": "1000", "kafka.ssl.unknown": "x"}
    assert source_options(given, streaming=False).consumer == {"isolation_level": "read_committed", "max_bytes": 1000}


def test_settings_of_tls_and_sasl_belong_together() -> None:
    given = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
    given |= {"kafka.sasl.username": "alice", "kafka.sasl.password": "alice-secret"}
    security = {name.removeprefix("kafka."): value for name, value in given.items()}
    for options in (source_options({**T, **given}, streaming=True), sink_options({**HERE, **given})):
        assert options.security == security
        assert "alice-secret" not in repr(options)


def test_settings_of_java_clients_are_no_misspelled_settings() -> None:
    """A setting of Java's clients is not reported as misspelled, even if its name is similar to a setting of HMB."""
    # HMB's consumer has the settings of a secured connection, too.
    ours = ("interceptor.classes", "sasl.", "security.", "ssl.")
    given = {f"kafka.{name}": "x" for name in JAVA_SETTINGS if not name.startswith(ours)}
    assert source_options({**T, **given, "kafka.acks": "all"}, streaming=False).consumer == {}
    with pytest.raises(OptionError, match=r"unknown option 'kafka[.]compresion.type'; did you mean 'kafka[.]compres"):
        sink_options({**HERE, "kafka.compresion.type": "lz4"})


def test_offsets_are_committed_only_with_the_option() -> None:
    assert source_options({**T, "kafka.group.id": "g"}, streaming=True).group is None
    assert source_options({**T, "kafka.group.id": "g", "commitOffsets": "true"}, streaming=True).group == "g"
    assert source_options({**T, "groupIdPrefix": "p", "commitOffsets": "true"}, streaming=True).group == "p"


def test_a_sink_accepts_settings_that_equal_the_defaults() -> None:
    assert sink_options({**HERE, "kafka.enable.idempotence": "true"}).producer == {"idempotence": True}
    with pytest.raises(OptionError, match=r"exactlyOnce=true needs kafka[.]acks=all"):
        sink_options({**HERE, "exactlyOnce": "true", "kafka.acks": "1"})
    with pytest.raises(OptionError, match=r"exactlyOnce=true needs kafka[.]enable[.]idempotence"):
        sink_options({**HERE, "exactlyOnce": "true", "kafka.enable.idempotence": "false"})
