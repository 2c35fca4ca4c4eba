"""`-X linger.ms=5` and `--config client.properties`: the client's settings under Kafka's names.

Each name leads to the keyword of `hmb.Producer` or `hmb.Consumer`, which has Kafka's name without `.ms` where it is in
seconds. A file of Kafka's tools can be given as it is: what is no setting of these clients gets a warning with the
nearest that is, but what would be dangerous to ignore, encryption and authentication, is an error.
"""

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from .common import USAGE, CliError, NewPath, name_value
from .option_groups import OTHER, under


class Setting(NamedTuple):
    """Which keyword a setting is, and how its text is read; ValueError says what it must be."""

    keyword: str
    read: Callable[[str], Any]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("must be a number") from None


def _seconds(text: str) -> float:
    return _number(text) / 1000


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("must be a whole number") from None


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
    "request.timeout.ms": Setting("request_timeout", _seconds),
    "security.protocol": Setting("", _plaintext),
}
PRODUCER = COMMON | {
    "acks": Setting("acks", _acks),
    "batch.size": Setting("batch_size", _integer),
    "buffer.memory": Setting("buffer_memory", _integer),
    "compression.type": Setting("compression", str),
    "compression.gzip.level": Setting("compression_level", _integer),
    "compression.lz4.level": Setting("compression_level", _integer),
    "compression.zstd.level": Setting("compression_level", _integer),
    "delivery.timeout.ms": Setting("delivery_timeout", _seconds),
    "enable.idempotence": Setting("idempotence", _boolean),
    "key.serializer": Setting("", str),
    "linger.ms": Setting("linger_ms", _number),
    "max.block.ms": Setting("max_block", _seconds),
    "max.request.size": Setting("max_request_size", _integer),
    "retry.backoff.ms": Setting("retry_backoff", _seconds),
    "transaction.timeout.ms": Setting("transaction_timeout", _seconds),
    "transactional.id": Setting("transactional_id", str),
    "value.serializer": Setting("", str),
}
CONSUMER = COMMON | {
    "auto.commit.interval.ms": Setting("auto_commit_interval", _seconds),
    "auto.offset.reset": Setting("offset", str),
    "check.crcs": Setting("check_crcs", _boolean),
    "enable.auto.commit": Setting("auto_commit", _boolean),
    "fetch.max.bytes": Setting("max_bytes", _integer),
    "fetch.max.wait.ms": Setting("max_wait_ms", _integer),
    "fetch.min.bytes": Setting("min_bytes", _integer),
    "group.id": Setting("group", str),
    "group.instance.id": Setting("group_instance_id", str),
    "group.protocol": Setting("group_protocol", str),
    "group.remote.assignor": Setting("remote_assignor", str),
    "heartbeat.interval.ms": Setting("heartbeat_interval", _seconds),
    "isolation.level": Setting("isolation_level", str),
    "key.deserializer": Setting("", str),
    "max.partition.fetch.bytes": Setting("max_partition_bytes", _integer),
    "max.poll.interval.ms": Setting("max_poll_interval", _seconds),
    "max.poll.records": Setting("max_poll_records", _integer),
    "metadata.max.age.ms": Setting("metadata_max_age", _seconds),
    "partition.assignment.strategy": Setting("assignors", _assignors),
    "session.timeout.ms": Setting("session_timeout", _seconds),
    "value.deserializer": Setting("", str),
}


def settings_option(*synonyms: str) -> Any:
    """-X name=value; the synonyms are what Kafka's tools call it."""
    return under(OTHER)(
        "-X",
        "settings",
        synonyms=synonyms,
        type=name_value,
        multiple=True,
        metavar="NAME=VALUE",
        help="A setting of the client, as in Kafka.",
    )


def config_option(*synonyms: str) -> Any:
    """--config FILE, as kafka-console-consumer has --consumer.config."""
    return under(OTHER)(
        "--config",
        "config",
        synonyms=synonyms,
        type=NewPath(),
        metavar="FILE",
        help="A client.properties file as Kafka has them.",
    )


def client_keywords(
    known: Mapping[str, Setting], config: str | None, given: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    """The keywords for a client; what is given with -X wins over the file."""
    from hmb.storage.properties import PropertiesError, read_properties

    try:
        properties = {} if config is None else read_properties(Path(config))
    except PropertiesError as error:
        raise CliError(str(error)) from error
    origins = dict.fromkeys(properties, f"{config}: ") | {name: "-X " for name, _ in given}
    keywords: dict[str, Any] = {}
    for name, text in (properties | dict(given)).items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            click.echo(f"hmb: {origins[name]}{name}: unknown setting, ignored{hint}", err=True)
            continue
        setting = known[name]
        try:
            value = setting.read(text)
        except ValueError as error:
            raise CliError(f"{origins[name]}{name}={text}: {error}", USAGE) from None
        if setting.keyword:
            keywords[setting.keyword] = value
    return keywords
