"""The options of the data source: those of Spark's Kafka connector, under its names, with its errors.

Spark hands options over in a dictionary that does not mind upper and lower case.  Those named `kafka.*` are settings
of the client under Kafka's names (`hmb.client.settings`); some of these would get in the way of what Spark does itself,
and are refused with the advice that the connector gives.

Which topics, exactly one of:  subscribe (names with commas), subscribePattern (found anywhere in a name), assign (JSON:
partitions).
Where to begin, the first that is given of:  startingTimestamp, startingOffsetsByTimestamp, startingOffsets.
Where a batch query ends, likewise:  endingTimestamp, endingOffsetsByTimestamp, endingOffsets.

Otherwise than the connector, which lets these pass and goes on with something else than was meant:

- a misspelt option and an endingTimestamp in a streaming query are refused;
- a time before 1970 is refused, and so is a partition's number that is none.

Left out: kafkaConsumer.pollTimeoutMs and fetchOffset.* are taken and do nothing (the client has time-outs of its own:
kafka.request.timeout.ms); a pattern is one of Python's `re`, which differs from Java's in rare corners.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hmb.client.consuming.settings import CONSUMER, ConsumerSettings
from hmb.client.offsets import ISOLATION_LEVELS
from hmb.client.producing.settings import PRODUCER
from hmb.client.settings import Setting, declarations, keywords
from hmb.spark.offsets import Spec, Times, TimeStrategy, parse_assign, parse_spec, parse_times
from hmb.spark.option_names import SINK_OPTIONS, SOURCE_OPTIONS

PREFIX = "kafka."
STRATEGIES = ("assign", "subscribe", "subscribePattern")
FORBIDDEN = {
    "auto.offset.reset": "Instead set the source option 'startingOffsets' to 'earliest' or 'latest' to specify where "
    "to start. Spark manages which offsets are consumed, so that no data is missed when topics or partitions appear.",
    "key.deserializer": "Keys are read as binary. Use DataFrame operations to explicitly deserialize them.",
    "value.deserializer": "Values are read as binary. Use DataFrame operations to explicitly deserialize them.",
    "key.serializer": "Keys are written from strings or binary. Use DataFrame operations to serialize them.",
    "value.serializer": "Values are written from strings or binary. Use DataFrame operations to serialize them.",
    "enable.auto.commit": "Spark keeps the offsets in its checkpoint; commitOffsets=true commits them as well.",
    "interceptor.classes": "Interceptors may break the query.",
    "transactional.id": "Set exactlyOnce=true: the sink names its transactions itself.",
}
_DURATION = re.compile(r"(\d+)\s*(ms|s|sec|second|seconds|m|min|minute|minutes|h|hour|hours)?", re.IGNORECASE)
_UNITS = {"": 0.001, "ms": 0.001, "s": 1, "m": 60, "h": 3600}


class OptionError(ValueError):
    """An option that is missing, contradicts another one, or has a value that it cannot have; names it."""


@dataclass(frozen=True)
class SourceOptions:
    """What a query reads, and how.  Picklable: tasks get it."""

    bootstrap_servers: str
    subscribe: tuple[str, ...] = ()
    pattern: str | None = None
    assign: Mapping[str, tuple[int, ...]] | None = None
    starting: Spec = "latest"
    ending: Spec = "latest"
    time_strategy: TimeStrategy = "error"
    fail_on_data_loss: bool = True
    max_offsets: int | None = None
    min_offsets: int | None = None
    max_trigger_delay: float = 900.0  # seconds
    min_partitions: int | None = None
    max_records: int | None = None  # in a task
    group: str | None = None  # whose offsets are committed
    include_headers: bool = False
    consumer: Mapping[str, Any] = field(default_factory=dict)  # further keywords of hmb.Consumer

    @property
    def retry_for(self) -> float:
        """Seconds; kafka.default.api.timeout.ms."""
        seconds: float = self.consumer.get("retry_for", declarations(ConsumerSettings)["retry_for"].default)
        return seconds


@dataclass(frozen=True)
class SinkOptions:
    """Where rows go, and how surely."""

    bootstrap_servers: str
    topic: str | None = None
    exactly_once: bool = False
    transactional_id_prefix: str = "hmb-spark"
    producer: Mapping[str, Any] = field(default_factory=dict)  # further keywords of hmb.Producer


def source_options(given: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    """The options of a query.  Raises OptionError."""
    options = _Given(given, SOURCE_OPTIONS)
    _check_strategy(options)
    settings = options.settings(CONSUMER)
    servers = settings.pop("bootstrap_servers", None)
    if not servers:
        raise OptionError("option 'kafka.bootstrap.servers' must be specified")
    group = settings.pop("group", None) or options.get("groupIdPrefix") or "hmb-spark"
    if (level := settings.get("isolation_level", "read_uncommitted")) not in ISOLATION_LEVELS:
        raise OptionError(f"option 'kafka.isolation.level' is one of {', '.join(ISOLATION_LEVELS)}, not {level!r}")
    starting = _spec(options, "starting", "latest" if streaming else "earliest")
    ending = _spec(options, "ending", "latest")
    if streaming:
        _refuse(options, "ending", "is not valid in streaming queries: they have no end")
    else:
        _check_batch_ends(starting, ending)
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
        include_headers=options.flag("includeHeaders", default=False),
        consumer=settings,
    )


def _check_strategy(options: _Given) -> None:
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
    raise OptionError(f"option 'startingOffsetsByTimestampStrategy' is 'error' or 'latest', not {text!r}")


def wants_headers(given: Mapping[str, str]) -> bool:
    """Whether there is a column of headers.  Raises OptionError."""
    return _Given(given, SOURCE_OPTIONS).flag("includeHeaders", default=False)


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """The options of a sink.  Raises OptionError."""
    options = _Given(given, SINK_OPTIONS)
    settings = options.settings(PRODUCER)
    servers = settings.pop("bootstrap_servers", None)
    if not servers:
        raise OptionError("option 'kafka.bootstrap.servers' must be specified")
    exactly_once = options.flag("exactlyOnce", default=False)
    if exactly_once and settings.get("acks", "all") not in ("all", -1):
        raise OptionError("exactlyOnce=true needs kafka.acks=all")
    if exactly_once and not settings.get("idempotence", True):
        raise OptionError("exactlyOnce=true needs kafka.enable.idempotence=true")
    return SinkOptions(
        bootstrap_servers=servers,
        topic=options.get("topic"),
        exactly_once=exactly_once,
        transactional_id_prefix=options.get("transactionalIdPrefix") or "hmb-spark",
        producer=settings,
    )


class _Given:
    """What a user gave, whatever its case; complains of what nobody knows."""

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
            elif near := difflib.get_close_matches(lower, by_lower, 1, 0.75):  # Spark has options of its own, too
                raise OptionError(f"unknown option {name!r}; did you mean {by_lower[near[0]]!r}?")

    def get(self, name: str) -> str | None:
        return self._values.get(name)

    def flag(self, name: str, *, default: bool) -> bool:
        text = self._values.get(name, str(default)).lower()
        if text not in ("true", "false"):
            raise OptionError(f"option {name!r} is true or false, not {text!r}")
        return text == "true"

    def number(self, name: str) -> int | None:
        text = self._values.get(name)
        if text is None:
            return None
        if not text.isdecimal() or int(text) == 0:
            raise OptionError(f"option {name!r} is a whole number from 1 on, not {text!r}")
        return int(text)

    def duration(self, name: str, default: float) -> float:
        """Seconds from "15m", "30s", "500ms", or milliseconds without a unit."""
        text = self._values.get(name)
        if text is None:
            return default
        match = _DURATION.fullmatch(text.strip())
        if match is None:
            raise OptionError(f"option {name!r} is a time such as 15m, 30s or 500ms, not {text!r}")
        unit = (match[2] or "").lower()
        return int(match[1]) * _UNITS[unit if unit == "ms" else unit[:1]]

    def settings(self, known: Mapping[str, Setting]) -> dict[str, Any]:
        """The client's keywords; what this client has no use for is left out, as Kafka's clients do."""
        for name, why in FORBIDDEN.items():
            if name in self._client:
                raise OptionError(f"option 'kafka.{name}' is not supported. {why}")
        try:
            return keywords(known, self._client).keywords
        except ValueError as error:
            raise OptionError(f"option kafka.{error}") from error


def _spec(options: _Given, which: str, default: Spec) -> Spec:
    """startingX or endingX, by the connector's precedence."""
    for name in (f"{which}Timestamp", f"{which}OffsetsByTimestamp", f"{which}Offsets"):
        if (text := options.get(name)) is not None:
            try:
                if name.endswith("Offsets"):
                    return parse_spec(text)
                return parse_times(text, by_partition=name.endswith("ByTimestamp"))
            except ValueError as error:
                raise OptionError(f"option {name!r}: {error}") from error
    return default


def _refuse(options: _Given, which: str, why: str) -> None:
    for name in (f"{which}Timestamp", f"{which}OffsetsByTimestamp", f"{which}Offsets"):
        if options.get(name) is not None:
            raise OptionError(f"option {name!r} {why}")


def _check_batch_ends(starting: Spec, ending: Spec) -> None:
    if starting == "latest":
        raise OptionError("startingOffsets can't be latest for batch queries: nothing would be left to read")
    if ending == "earliest":
        raise OptionError("endingOffsets can't be earliest: nothing would be left to read")
    for spec, word, number in ((starting, "startingOffsets can't be latest (-1)", -1), (ending, "endingOffsets", -2)):
        if isinstance(spec, dict):
            for topic, partitions in spec.items():
                if number in partitions.values():
                    what = word if number == -1 else f"{word} can't be earliest (-2)"
                    raise OptionError(f"{what} for {topic} in batch queries")

    _check_order(starting, ending)


def _check_order(starting: Spec, ending: Spec) -> None:
    """Where both are said by partition, they are of the same partitions, and none ends before it starts."""
    first, end, what = starting, ending, "Offsets"
    if isinstance(starting, Times) and isinstance(ending, Times):
        first, end, what = starting.by_partition or "earliest", ending.by_partition or "latest", "OffsetsByTimestamp"
    if not isinstance(first, dict) or not isinstance(end, dict):
        return
    if {topic: set(each) for topic, each in first.items()} != {topic: set(each) for topic, each in end.items()}:
        raise OptionError(f"starting{what} and ending{what} name different partitions")
    for topic, each in first.items():
        for number, value in each.items():
            if value > end[topic][number] >= 0:
                where = f"{topic}-{number} starts at {value} and ends at {end[topic][number]}"
                raise OptionError(f"starting{what} is after ending{what}: {where}")


def _assign(text: str | None) -> dict[str, tuple[int, ...]] | None:
    try:
        return None if text is None else parse_assign(text)
    except ValueError as error:
        raise OptionError(f"option 'assign': {error}") from error


def _names(text: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    if text is not None and not names:
        raise OptionError(f"no topic to subscribe to in option 'subscribe': {text!r}")
    return names


def _pattern(text: str | None) -> str | None:
    if text is None:
        return None
    if not text.strip():
        raise OptionError("option 'subscribePattern' is empty")
    try:
        re.compile(text)
    except re.error as error:
        raise OptionError(f"option 'subscribePattern': {text!r} is no regular expression: {error}") from error
    return text
