"""Parse and check the options of the data source. The options are the same as in Spark's Kafka connector.

Spark passes the options in a dictionary. The names can be in upper or lower case. An option whose name starts
with `kafka.` is a client setting: `kafka.acks` is the setting `acks` (`hmb.client.settings`). Some decisions belong
to Spark, for example which offsets to read. This module refuses client settings that would change these
decisions. Its messages give the same advice as Spark's Kafka connector.

These options set the topics, the start and the end of a query. For the start and for the end, the query uses
the leftmost option that is set:
    topics  subscribe, subscribePattern, assign (set exactly one)
    start   startingTimestamp, startingOffsetsByTimestamp, startingOffsets
    end     endingTimestamp, endingOffsetsByTimestamp, endingOffsets (only batch queries)

Example: a query has the options `startingTimestamp=1700000000000` and `startingOffsets=earliest`. The query starts at
the first records at or after this time, because startingTimestamp takes precedence over startingOffsets.

This module refuses some mistakes that Spark's Kafka connector ignores: an endingTimestamp in a streaming query, a time
before 1970, a partition that is not a number, and a misspelled option. For example, `kafka.isolation_level` is
misspelled: the correct name is `kafka.isolation.level`.

Limits: kafkaConsumer.pollTimeoutMs and fetchOffset.* are accepted, but have no effect. The client uses its own timeouts
instead (kafka.request.timeout.ms). The option subscribePattern is a regular expression of Python. Spark's Kafka
connector uses Java's regular expressions. In rare cases, the same expression has a different meaning in Java.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hmb.client.consuming.settings import CONSUMER_SETTINGS, ConsumerSettings
from hmb.client.producing.settings import ACKS, PRODUCER_SETTINGS, ProducerSettings
from hmb.client.settings import SECURITY, Setting, declarations, keywords
from hmb.protocol.enums import EARLIEST, ISOLATION_LEVELS, LATEST, Acks
from hmb.spark.bounds import Bound, Times, TimeStrategy, parse_assign, parse_bound, parse_times
from hmb.spark.kafka_names import JAVA_SETTINGS
from hmb.spark.option_names import COLUMN_NAMES, DEFAULT_NAME, HEADERS, SINK_OPTIONS, SOURCE_OPTIONS

PREFIX = "kafka."
STRATEGIES = ("assign", "subscribe", "subscribePattern")
FORBIDDEN = {
    "auto.offset.reset": "Instead set the source option 'startingOffsets' to 'earliest' or 'latest' to specify where "
    "to start. Spark manages which offsets are consumed, so that no data is missed when topics or partitions appear.",
    "key.deserializer": "Keys are read as binary. Use DataFrame operations to explicitly deserialize them.",
    "value.deserializer": "Values are read as binary. Use DataFrame operations to explicitly deserialize them.",
    "key.serializer": "Keys are written from strings or binary. Use DataFrame operations to serialize them.",
    "value.serializer": "Values are written from strings or binary. Use DataFrame operations to serialize them.",
    "enable.auto.commit": "Spark stores offsets in its checkpoint. Set commitOffsets=true to commit them as well.",
    "interceptor.classes": "Interceptors may break the query.",
    "transactional.id": "Set exactlyOnce=true: the sink then chooses its transactional ids.",
}
_DURATION = re.compile(r"(\d+)\s*(ms|s|sec|second|seconds|m|min|minute|minutes|h|hour|hours)?", re.IGNORECASE)
_UNITS = {"": 0.001, "ms": 0.001, "s": 1, "m": 60, "h": 3600}


D = TypeVar("D", float, None)


class OptionError(ValueError):
    """An option is missing, has an invalid value, or contradicts another option. The message names the option."""


@dataclass(frozen=True)
class SourceOptions:
    """The parsed options of a query that reads topics. Spark pickles the options and sends them to the tasks."""

    bootstrap_servers: str
    subscribe: tuple[str, ...]
    pattern: str | None
    assign: Mapping[str, tuple[int, ...]] | None  # topic -> partition numbers
    starting: Bound
    ending: Bound
    time_strategy: TimeStrategy
    fail_on_data_loss: bool
    max_offsets: int | None
    min_offsets: int | None
    max_trigger_delay: float  # seconds
    min_partitions: int | None
    max_records: int | None  # the maximum number of offsets in a task
    group: str | None  # the group for which `commitOffsets` commits offsets; None: commit nothing
    columns: tuple[str, ...]
    push_filters: bool
    max_lateness: float | None  # the longest time (seconds) by which a record can be late; None: no limit
    consumer: Mapping[str, Any]  # further keyword arguments of hmb.Consumer
    security: Mapping[str, str] | None = field(repr=False)  # the settings of TLS and SASL

    @property
    def retry_for(self) -> float:
        """The time in seconds during which a failed request is retried (option kafka.default.api.timeout.ms)."""
        return float(self.setting("retry_for"))

    def setting(self, keyword: str) -> Any:
        """Return the value of a keyword argument of hmb.Consumer, or its default if no option sets it."""
        return self.consumer.get(keyword, declarations(ConsumerSettings)[keyword].default)


@dataclass(frozen=True)
class SinkOptions:
    """The parsed options of a query that writes, and whether the query writes at least once or exactly once."""

    bootstrap_servers: str
    topic: str | None = None
    exactly_once: bool = False
    fail_on_changed_rows: bool = True
    transactional_id_prefix: str = DEFAULT_NAME
    producer: Mapping[str, Any] = field(default_factory=dict)  # further keyword arguments of hmb.Producer
    security: Mapping[str, str] | None = field(default=None, repr=False)  # the settings of TLS and SASL

    @property
    def max_block(self) -> float:
        """The time in seconds for which a task waits for a broker (option kafka.max.block.ms)."""
        return float(self.producer.get("max_block", declarations(ProducerSettings)["max_block"].default))


def source_options(given: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    """Parse and check the options of a query that reads. Raises OptionError."""
    options = _Given(given, SOURCE_OPTIONS)
    _check_strategy(options)
    settings = options.settings(CONSUMER_SETTINGS)
    servers = _servers(settings)
    group = settings.pop("group", None) or options.get("groupIdPrefix") or DEFAULT_NAME
    if (level := settings.get("isolation_level")) not in (None, *ISOLATION_LEVELS):
        raise OptionError(f"option 'kafka.isolation.level' must be one of {', '.join(ISOLATION_LEVELS)}, not {level!r}")
    starting = _bound(options, "starting", "latest" if streaming else "earliest")
    ending = _bound(options, "ending", "latest")
    if streaming:
        _refuse(options, "ending", "is not valid in streaming queries: they have no end")
    else:
        _check_batch_bounds(starting, ending)
    least, most = options.number("minOffsetsPerTrigger"), options.number("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise OptionError(f"minOffsetsPerTrigger, {least}, is larger than maxOffsetsPerTrigger, {most}")
    return SourceOptions(
        bootstrap_servers=servers,
        subscribe=_names(options.get("subscribe")),
        pattern=_pattern(options.get("subscribePattern")),
        assign=_assign(options.get("assign")),
        starting=starting,
        ending=ending,
        time_strategy=_time_strategy(options),
        fail_on_data_loss=options.flag("failOnDataLoss", default=True),
        max_offsets=most,
        min_offsets=least,
        max_trigger_delay=options.duration("maxTriggerDelay", 900.0),
        min_partitions=options.number("minPartitions"),
        max_records=options.number("maxRecordsPerPartition"),
        group=group if options.flag("commitOffsets", default=False) else None,
        columns=_columns(options),
        push_filters=options.flag("pushFilters", default=False),
        max_lateness=options.duration("maxLateness", None),
        security=settings.pop(SECURITY, None),
        consumer=settings,
    )


def _servers(settings: dict[str, Any]) -> str:
    """Remove and return the brokers' addresses in `settings`. Raises OptionError if they are missing."""
    servers: str = settings.pop("bootstrap_servers", "")
    if not servers:
        raise OptionError("option 'kafka.bootstrap.servers' must be specified")
    return servers


def _check_strategy(options: _Given) -> None:
    if options.are_empty:
        raise OptionError(
            f"the query has no options: kafka.bootstrap.servers and one of {', '.join(STRATEGIES)} are required. "
            "(Spark does not store the OPTIONS of CREATE TABLE ... USING hmb: "
            "use CREATE TEMPORARY VIEW ... USING hmb instead)"
        )
    chosen = [name for name in STRATEGIES if options.get(name) is not None]
    if not chosen:
        raise OptionError(f"one of the following options must be specified: {', '.join(STRATEGIES)}")
    if len(chosen) > 1:
        raise OptionError(f"only one of these options can be specified, not {' and '.join(chosen)}")


def _time_strategy(options: _Given) -> TimeStrategy:
    text = options.get("startingOffsetsByTimestampStrategy") or "error"
    match text.lower():
        case "error":
            return "error"
        case "latest":
            return "latest"
    raise OptionError(f"option 'startingOffsetsByTimestampStrategy' must be 'error' or 'latest', not {text!r}")


def _columns(options: _Given) -> tuple[str, ...]:
    includes_headers = options.flag("includeHeaders", default=False)
    text = options.get("columns")
    if text is None:
        return (*COLUMN_NAMES, HEADERS) if includes_headers else COLUMN_NAMES
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in (*COLUMN_NAMES, HEADERS):
            raise OptionError(f"option 'columns': {name!r} is not one of {', '.join((*COLUMN_NAMES, HEADERS))}")
        if names.count(name) > 1:
            raise OptionError(f"option 'columns' contains {name!r} more than once")
    if includes_headers and HEADERS not in names:
        raise OptionError("includeHeaders=true, but option 'columns' does not contain headers")
    return names


def loaded_options(given: Mapping[str, str]) -> SourceOptions:
    """Parse and check options before the data source knows whether the query is batch or streaming.

    Some options are valid in only one kind of query. Raises OptionError if neither kind accepts all given options.
    """
    try:
        return source_options(given, streaming=False)
    except OptionError as error:
        try:
            return source_options(given, streaming=True)
        except OptionError:
            raise error from None


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Parse and check the options of a query that writes. Raises OptionError."""
    options = _Given(given, SINK_OPTIONS)
    settings = options.settings(PRODUCER_SETTINGS)
    servers = _servers(settings)
    exactly_once = options.flag("exactlyOnce", default=False)
    if exactly_once and ACKS.get(settings.get("acks", Acks.ALL)) is not Acks.ALL:
        raise OptionError("exactlyOnce=true needs kafka.acks=all")
    if exactly_once and not settings.get("idempotence", True):
        raise OptionError("exactlyOnce=true needs kafka.enable.idempotence=true")
    return SinkOptions(
        bootstrap_servers=servers,
        topic=options.get("topic"),
        exactly_once=exactly_once,
        fail_on_changed_rows=options.flag("failOnChangedRows", default=SinkOptions.fail_on_changed_rows),
        transactional_id_prefix=options.get("transactionalIdPrefix") or DEFAULT_NAME,
        security=settings.pop(SECURITY, None),
        producer=settings,
    )


class _Given:
    """The options that the user has set. The names of options can be in upper or lower case.

    Raises OptionError if an unknown name is similar to a known option, because the user has probably misspelled
    this option. All other unknown names are ignored, because Spark itself adds options.
    """

    def __init__(self, given: Mapping[str, str], known: Iterable[str]) -> None:
        by_lower = {name.lower(): name for name in known}
        self._values: dict[str, str] = {}
        self._client: dict[str, str] = {}
        for name, value in given.items():
            lower = name.lower()
            if lower.startswith(PREFIX):
                self._client[lower.removeprefix(PREFIX)] = value
            elif lower in by_lower:
                self._values[by_lower[lower]] = value
            elif near := difflib.get_close_matches(lower, by_lower, 1, 0.75):
                raise OptionError(f"unknown option {name!r}; did you mean {by_lower[near[0]]!r}?")

    @property
    def are_empty(self) -> bool:
        return not self._values and not self._client

    def get(self, name: str) -> str | None:
        return self._values.get(name)

    def flag(self, name: str, *, default: bool) -> bool:
        text = self._values.get(name, str(default)).lower()
        if text not in ("true", "false"):
            raise OptionError(f"option {name!r} must be true or false, not {text!r}")
        return text == "true"

    def number(self, name: str) -> int | None:
        text = self._values.get(name)
        if text is None:
            return None
        if not text.isdecimal() or int(text) == 0:
            raise OptionError(f"option {name!r} must be a whole number of at least 1, not {text!r}")
        return int(text)

    def duration(self, name: str, default: D) -> float | D:
        """Return the duration in an option, in seconds.

        The text of the option is, for example, "15m", "30s" or "500ms". A number without a unit is in ms.
        """
        text = self._values.get(name)
        if text is None:
            return default
        match = _DURATION.fullmatch(text.strip())
        if match is None:
            raise OptionError(f"option {name!r} must be a duration such as 15m, 30s or 500ms, not {text!r}")
        unit = (match[2] or "").lower()
        return int(match[1]) * _UNITS[unit if unit == "ms" else unit[:1]]

    def settings(self, known: Mapping[str, Setting]) -> dict[str, Any]:
        """Return the `kafka.*` options as keyword arguments. Ignore settings that this client does not have.

        Raises OptionError if an unknown name is similar to a known name, because the user has probably misspelled it.
        Also raises OptionError for invalid values and for the settings in FORBIDDEN.
        """
        for name, advice in FORBIDDEN.items():
            if name in self._client:
                raise OptionError(f"option 'kafka.{name}' is not supported. {advice}")
        try:
            found = keywords(known, self._client)
        except ValueError as error:
            raise OptionError(f"option kafka.{error}") from error
        real = {*CONSUMER_SETTINGS, *PRODUCER_SETTINGS, *JAVA_SETTINGS}
        for name in found.unknown:
            if name not in real and (near := difflib.get_close_matches(name.replace("_", "."), real, 1, 0.8)):
                raise OptionError(f"unknown option 'kafka.{name}'; did you mean 'kafka.{near[0]}'?")
        return found.keywords


def _bound(options: _Given, prefix: str, default: Bound) -> Bound:
    """Return the start of a query if `prefix` is "starting", or its end if `prefix` is "ending". Raises OptionError.

    Three options can set the start: `startingTimestamp`, `startingOffsetsByTimestamp` and `startingOffsets`. Use the
    first one that is set, or `default` if none is set. The options for the end are `endingTimestamp` and so on.
    """
    for name in (f"{prefix}Timestamp", f"{prefix}OffsetsByTimestamp", f"{prefix}Offsets"):
        if (text := options.get(name)) is not None:
            try:
                if name.endswith("Offsets"):
                    return parse_bound(text)
                return parse_times(text, by_partition=name.endswith("ByTimestamp"))
            except ValueError as error:
                raise OptionError(f"option {name!r}: {error}") from error
    return default


def _refuse(options: _Given, prefix: str, reason: str) -> None:
    for name in (f"{prefix}Timestamp", f"{prefix}OffsetsByTimestamp", f"{prefix}Offsets"):
        if options.get(name) is not None:
            raise OptionError(f"option {name!r} {reason}")


def _check_batch_bounds(starting: Bound, ending: Bound) -> None:
    if starting == "latest":
        raise OptionError("startingOffsets can't be latest for batch queries: the query would not read any records")
    if ending == "earliest":
        raise OptionError("endingOffsets can't be earliest: the query would not read any records")
    for bound, offset, mistake in (
        (starting, LATEST, "startingOffsets can't be latest (-1)"),
        (ending, EARLIEST, "endingOffsets can't be earliest (-2)"),
    ):
        if isinstance(bound, dict):
            for topic, partitions in bound.items():
                if offset in partitions.values():
                    raise OptionError(f"{mistake} for a partition of {topic}: the query would not read its records")

    _check_order(starting, ending)


def _check_order(starting: Bound, ending: Bound) -> None:
    """Raise OptionError if `starting` is after `ending` in any partition, or if their partitions differ.

    The function compares the start and the end of a batch query only if both contain an offset for each
    partition, or both contain a time for each partition.
    """
    first, end, kind = starting, ending, "Offsets"
    if isinstance(starting, Times) and isinstance(ending, Times):
        first, end, kind = starting.by_partition or "earliest", ending.by_partition or "latest", "OffsetsByTimestamp"
    if not isinstance(first, dict) or not isinstance(end, dict):
        return
    if {topic: set(each) for topic, each in first.items()} != {topic: set(each) for topic, each in end.items()}:
        raise OptionError(f"starting{kind} and ending{kind} name different partitions")
    for topic, each in first.items():
        for number, value in each.items():
            if value > end[topic][number] >= 0:
                partition = f"{topic}-{number} starts at {value} and ends at {end[topic][number]}"
                raise OptionError(f"starting{kind} is after ending{kind}: {partition}")


def _assign(text: str | None) -> dict[str, tuple[int, ...]] | None:
    try:
        return None if text is None else parse_assign(text)
    except ValueError as error:
        raise OptionError(f"option 'assign': {error}") from error


def _names(text: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    if text is not None and not names:
        raise OptionError(f"option 'subscribe' does not name a topic: {text!r}")
    return names


def _pattern(text: str | None) -> str | None:
    if text is None:
        return None
    if not text.strip():
        raise OptionError("option 'subscribePattern' is empty")
    try:
        re.compile(text)
    except re.error as error:
        raise OptionError(f"option 'subscribePattern': {text!r} is not a regular expression: {error}") from error
    return text
