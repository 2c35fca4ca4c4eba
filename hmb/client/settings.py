"""The settings of the clients under Kafka's names, as a client.properties has them: `linger.ms`, `fetch.min.bytes`.

Each name leads to the keyword of `Producer` or `Consumer`, which has Kafka's name without `.ms` where it is in seconds.
What these clients do otherwise than Kafka's, and may do so, has no keyword and is ignored (serializers of Java);
what would be dangerous to ignore, encryption and authentication, is refused.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

MAX_INT32 = 2**31 - 1
RETRY_FOR = 30.0  # seconds, where default.api.timeout.ms is not set


class SettingError(ValueError):
    """A value that a setting cannot have."""

    def __init__(self, name: str, text: str, why: str) -> None:
        super().__init__(f"{name}={text}: {why}")
        self.name = name


class Setting(NamedTuple):
    """Which keyword a setting is, and how its text is read; ValueError says what it must be."""

    keyword: str
    read: Callable[[str], Any]


def _milliseconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError("must be a number") from None
    if not 0 <= number <= MAX_INT32:
        raise ValueError("must be a number from 0 on that fits into 32 bits")
    return number


def _seconds(text: str) -> float:
    return _milliseconds(text) / 1000


def _time_limit(text: str) -> float:
    """Seconds for something that takes some time."""
    seconds = _seconds(text)
    if not seconds:
        raise ValueError("must be above 0")
    return seconds


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("must be a whole number") from None


def _amount(text: str) -> int:
    number = _integer(text)
    if number < 0:
        raise ValueError("must be a whole number from 0 on")
    return number


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _acks(text: str) -> int | str:
    return text if text == "all" else _integer(text)


def _assignors(text: str) -> tuple[str, ...]:
    """Names, or Kafka's classes: org.apache.kafka.clients.consumer.CooperativeStickyAssignor."""
    names = (name.strip().rpartition(".")[2].removesuffix("Assignor") for name in text.split(","))
    return tuple(
        {"CooperativeSticky": "cooperative-sticky", "RoundRobin": "roundrobin"}.get(n, n.lower()) for n in names
    )


def _plaintext(text: str) -> None:
    if text.upper() != "PLAINTEXT":
        raise ValueError("this client speaks neither TLS nor SASL; only PLAINTEXT will do")


COMMON = {
    "bootstrap.servers": Setting("bootstrap_servers", str),
    "client.id": Setting("client_id", str),
    "request.timeout.ms": Setting("request_timeout", _time_limit),
    "security.protocol": Setting("", _plaintext),
}
PRODUCER = COMMON | {
    "acks": Setting("acks", _acks),
    "batch.size": Setting("batch_size", _amount),
    "buffer.memory": Setting("buffer_memory", _amount),
    "compression.type": Setting("compression", str),
    "compression.gzip.level": Setting("compression_level", _integer),
    "compression.lz4.level": Setting("compression_level", _integer),
    "compression.zstd.level": Setting("compression_level", _integer),
    "delivery.timeout.ms": Setting("delivery_timeout", _time_limit),
    "enable.idempotence": Setting("idempotence", _boolean),
    "key.serializer": Setting("", str),
    "linger.ms": Setting("linger_ms", _milliseconds),
    "max.block.ms": Setting("max_block", _seconds),
    "max.in.flight.requests.per.connection": Setting("max_in_flight", _amount),
    "max.request.size": Setting("max_request_size", _amount),
    "retry.backoff.ms": Setting("retry_backoff", _seconds),
    "transaction.timeout.ms": Setting("transaction_timeout", _time_limit),
    "transactional.id": Setting("transactional_id", str),
    "value.serializer": Setting("", str),
}
CONSUMER = COMMON | {
    "auto.commit.interval.ms": Setting("auto_commit_interval", _seconds),
    "auto.offset.reset": Setting("offset", str),
    "check.crcs": Setting("check_crcs", _boolean),
    "default.api.timeout.ms": Setting("retry_for", _time_limit),
    "enable.auto.commit": Setting("auto_commit", _boolean),
    "fetch.max.bytes": Setting("max_bytes", _amount),
    "fetch.max.wait.ms": Setting("max_wait_ms", _amount),
    "fetch.min.bytes": Setting("min_bytes", _amount),
    "group.id": Setting("group", str),
    "group.instance.id": Setting("group_instance_id", str),
    "group.protocol": Setting("group_protocol", str),
    "group.remote.assignor": Setting("remote_assignor", str),
    "heartbeat.interval.ms": Setting("heartbeat_interval", _seconds),
    "isolation.level": Setting("isolation_level", str),
    "key.deserializer": Setting("", str),
    "max.partition.fetch.bytes": Setting("max_partition_bytes", _amount),
    "max.poll.interval.ms": Setting("max_poll_interval", _seconds),
    "max.poll.records": Setting("max_poll_records", _amount),
    "metadata.max.age.ms": Setting("metadata_max_age", _seconds),
    "partition.assignment.strategy": Setting("assignors", _assignors),
    "session.timeout.ms": Setting("session_timeout", _seconds),
    "value.deserializer": Setting("", str),
}


class Keywords(NamedTuple):
    """For a client; and which of the names are none of its settings."""

    keywords: dict[str, Any]
    unknown: list[str]


def keywords(known: Mapping[str, Setting], properties: Mapping[str, str]) -> Keywords:
    """The keywords for a client, by `PRODUCER` or `CONSUMER`; SettingError for a value that cannot be."""
    found: dict[str, Any] = {}
    unknown = []
    for name, text in properties.items():
        if name not in known:
            unknown.append(name)
            continue
        setting = known[name]
        try:
            value = setting.read(text)
        except ValueError as error:
            raise SettingError(name, text, str(error)) from None
        if setting.keyword:
            found[setting.keyword] = value
    return Keywords(found, unknown)
