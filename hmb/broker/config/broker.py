"""Declares the broker's settings, with the names of Kafka's `server.properties`.

Most fields of `BrokerConfig` declare one setting: its name in Kafka, its default, its meaning, its minimum and
its maximum. Some other fields contain a *part*: an object with the settings of one subject. For example,
`config.share` contains the settings of share groups, and `config.share.session_timeout` is the value of
`group.share.session.timeout.ms`.

A *dynamic* setting is a setting that clients can alter while the broker runs (dynamic.py).

Some settings of the broker are defaults for settings of topics. For example, the broker's `log.segment.bytes`
is the default for the topic's `segment.bytes`. LOG_DEFAULTS maps the name of each such broker setting to the
name of the topic setting. All these broker settings are dynamic: clients can alter them while the broker runs.

The class `LogConfig` (storage/config.py) declares topic settings, such as `segment.bytes`. The broker settings
in LOG_DEFAULTS, such as `log.segment.bytes`, use the same declarations.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from hmb.broker.config import no_effect
from hmb.broker.config.groups.classic import ClassicGroupConfig
from hmb.broker.config.groups.consumer import ConsumerGroupConfig
from hmb.broker.config.groups.share import ShareGroupConfig
from hmb.broker.config.groups.streams import StreamsGroupConfig
from hmb.broker.config.keys import ConfigError, ConfigKey, Settings, nearest
from hmb.broker.config.keys import dynamic_setting as _dynamic
from hmb.broker.config.keys import setting as _key
from hmb.broker.config.limits import LimitsConfig
from hmb.broker.config.security import SECURITY
from hmb.defaults import DEFAULT_DATA_DIR, DEFAULT_SERVER
from hmb.protocol.enums import INT32_MAX, ConfigType
from hmb.records import DEFAULT_LIMIT
from hmb.storage.config import LogConfig
from hmb.units import HOUR_MS, MIB, MINUTE_MS

PROTOCOL_MAP = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"
MAX_RATE = sys.float_info.max
LOG_DEFAULTS = {
    "log.segment.bytes": "segment.bytes",
    "log.roll.ms": "segment.ms",
    "log.roll.jitter.ms": "segment.jitter.ms",
    "log.index.size.max.bytes": "segment.index.bytes",
    "log.preallocate": "preallocate",
    "log.index.interval.bytes": "index.interval.bytes",
    "message.max.bytes": "max.message.bytes",
    "compression.type": "compression.type",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.zstd.level": "compression.zstd.level",
    "log.message.timestamp.type": "message.timestamp.type",
    "log.message.timestamp.before.max.ms": "message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms": "message.timestamp.after.max.ms",
    "log.cleanup.policy": "cleanup.policy",
    "log.cleaner.delete.retention.ms": "delete.retention.ms",
    "log.cleaner.min.compaction.lag.ms": "min.compaction.lag.ms",
    "log.cleaner.max.compaction.lag.ms": "max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio": "min.cleanable.dirty.ratio",
    "log.retention.ms": "retention.ms",
    "log.retention.bytes": "retention.bytes",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
    "log.flush.interval.messages": "flush.messages",
    "log.flush.interval.ms": "flush.ms",
    "log.local.retention.ms": "local.retention.ms",
    "log.local.retention.bytes": "local.retention.bytes",
    "min.insync.replicas": "min.insync.replicas",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
# Some time settings have several names. TIMES maps each additional name to the setting's main name and to a factor. The
# broker multiplies the value by this factor to get ms. For example, log.retention.hours has the factor 3,600,000,
# because an hour has 3,600,000 ms.
#
# If a user sets both log.retention.hours and log.retention.ms, the broker must use the value in ms. The broker reads
# names in the order of TIMES first, then all other names. A later value replaces an earlier value, so larger units come
# first in TIMES.
TIMES = {
    "log.retention.hours": ("log.retention.ms", HOUR_MS),
    "log.retention.minutes": ("log.retention.ms", MINUTE_MS),
    "log.roll.hours": ("log.roll.ms", HOUR_MS),
    "log.roll.jitter.hours": ("log.roll.jitter.ms", HOUR_MS),
    "log.flush.scheduler.interval.ms": ("log.flush.interval.ms", 1),
}
ALIASES = {"node.id": "broker.id", "log.dir": "log.dirs"}
KAFKA_DEFAULTS_OF_ALIASES = {"node.id": None, "log.dir": "/tmp/kafka-logs"}
# The setting `threading` has two values. With "connection", one thread serves one connection (network/server.py). With
# "staged", several threads share this work (network/staged.py).
THREADING = ("connection", "staged")
# The broker reads the names in OVERRIDDEN before all other names, and a later value replaces an earlier value. So if a
# user sets both log.dir and log.dirs, the broker uses the value of log.dirs.
OVERRIDDEN = [*TIMES, "log.dir"]


class BrokerConfig(Settings):
    """All settings of a broker. Sizes are in bytes, times in ms."""

    broker_id: int = _key(
        "broker.id", 0, "The id of this broker, which clients see.", 0, INT32_MAX, kafka_default=-1
    )
    listeners: str = _key(
        "listeners", f"PLAINTEXT://{DEFAULT_SERVER}",
        "The addresses on which the broker accepts connections.", is_list=True, kafka_default="PLAINTEXT://:9092"
    )
    advertised_listeners: str = _key(
        "advertised.listeners", "",
        "The addresses to which clients connect. If it is empty, they connect to the listeners.", is_list=True,
        kafka_default=None
    )
    listener_protocols: str = _key(
        "listener.security.protocol.map", PROTOCOL_MAP, "The security protocol of each listener name."
    )
    allow_unauthenticated: bool = _key(
        "allow.unauthenticated", False, "Whether other computers may use the broker without a login."
    )
    log_dirs: str = _key(
        "log.dirs", DEFAULT_DATA_DIR, "The data directory. The broker uses exactly one.", is_list=True,
        kafka_default=None
    )
    num_partitions: int = _key(
        "num.partitions", 1,
        "The number of partitions of a new topic, if the client does not choose a number.", 1, INT32_MAX
    )
    auto_create_topics: bool = _key(
        "auto.create.topics.enable", True,
        "Whether the broker creates a topic when a client requests a topic that does not exist."
    )
    threading: str = _key(
        "threading", "connection",
        "How threads handle requests: one thread for each connection, or several stages with queues.", choices=THREADING
    )
    io_threads: int = _dynamic(
        "num.io.threads", 8, "With threading=staged, the number of threads that handle requests.", 1, INT32_MAX
    )
    queued_max_requests: int = _key(
        "queued.max.requests", 500,
        "With threading=staged, the number of requests that may wait for a thread.", 1, INT32_MAX
    )
    queued_max_bytes: int = _key(
        "queued.max.request.bytes", 16 * MIB, "The most memory that all requests may use together. -1: no limit.", -1,
        kafka_default=-1
    )
    request_max_bytes: int = _key(
        "socket.request.max.bytes", 100 * MIB, "The size of the largest request that the broker accepts.", 1, INT32_MAX
    )
    fetch_max_bytes: int = _key(
        "fetch.max.bytes", 55 * MIB, "The largest size of the records in the response to one fetch.", 1024, INT32_MAX
    )
    fetch_session_slots: int = _key(
        "max.incremental.fetch.session.cache.slots", 1000,
        "The largest number of fetch sessions that the broker stores.", 0, INT32_MAX
    )
    fetch_session_eviction: int = _key(
        "min.incremental.fetch.session.eviction.ms", 120_000,
        "The time after which the broker may replace an unused fetch session by a new one.", 0, INT32_MAX
    )
    max_partitions_described: int = _key(
        "max.request.partition.size.limit", 2000,
        "The largest number of partitions in one response to DescribeTopicPartitions.", 1, INT32_MAX
    )
    flush_acks_all: bool = _key(
        "log.flush.acks.all", True,
        "Whether the broker syncs records to disk before it answers a Produce request with acks=all."
    )
    retention_check_interval: int = _key(
        "log.retention.check.interval.ms", 300_000, "The time between two deletions of old segments.", 1
    )
    flush_check_interval: int = _key(
        "log.flush.offset.checkpoint.interval.ms", 60_000,
        "The time between two syncs of all logs and writes of their recovery points.", 1, INT32_MAX
    )
    cleaner_backoff: int = _dynamic(
        "log.cleaner.backoff.ms", 15_000, "The time between two searches for logs to compact.", 1
    )
    cleaner_memory: int = _dynamic(
        "log.cleaner.dedupe.buffer.size", 128 * MIB, "The memory for the keys of a log during its compaction.", 1024
    )
    cleaner_rate: float = _dynamic(
        "log.cleaner.io.max.bytes.per.second", MAX_RATE,
        "The largest rate at which compaction reads and writes.", 1, MAX_RATE
    )
    offsets_partitions: int = _key(
        "offsets.topic.num.partitions", 50, "The number of partitions of __consumer_offsets.", 1, INT32_MAX
    )
    offsets_segment_bytes: int = _key(
        "offsets.topic.segment.bytes", 100 * MIB, "The size of a segment of __consumer_offsets.", 1, INT32_MAX
    )
    offset_metadata_max: int = _key(
        "offset.metadata.max.bytes", 4096, "The largest size of the metadata in an offset commit.", 0, INT32_MAX
    )
    offsets_retention: int = _key(
        "offsets.retention.minutes", 10_080,
        "The broker deletes a committed offset that no consumer has used for this time.", 1, INT32_MAX
    )
    offsets_check_interval: int = _key(
        "offsets.retention.check.interval.ms", 600_000, "The time between two searches for expired offsets.", 1
    )
    transactions_partitions: int = _key(
        "transaction.state.log.num.partitions", 50, "The number of partitions of __transaction_state.", 1, INT32_MAX
    )
    transactions_segment_bytes: int = _key(
        "transaction.state.log.segment.bytes", 100 * MIB, "The size of a segment of __transaction_state.", 1, INT32_MAX
    )
    transaction_max_timeout: int = _key(
        "transaction.max.timeout.ms",
        900_000,
        "The longest transaction timeout that a producer may choose.",
        1,
        INT32_MAX,
    )
    transactions_check_interval: int = _key(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", 10_000,
        "The time between two searches for transactions that exceeded their timeout.", 1, INT32_MAX
    )
    transactional_id_expiration: int = _key(
        "transactional.id.expiration.ms", 604_800_000,
        "The broker removes a transactional id that no producer has used for this time.", 1, INT32_MAX
    )
    transactional_ids_check_interval: int = _key(
        "transaction.remove.expired.transaction.cleanup.interval.ms", 3_600_000,
        "The time between two searches for expired transactional ids.", 1, INT32_MAX
    )
    client_telemetry: bool = _key(
        "client.telemetry.enable", False, "Whether the broker asks clients for their metrics, and logs them (KIP-714)."
    )
    telemetry_max_bytes: int = _key(
        "telemetry.max.bytes", MIB, "The largest size of the metrics in one push of a client.", 1, INT32_MAX
    )
    max_decompressed: int = _key(
        "max.decompressed.message.bytes", DEFAULT_LIMIT, "The largest size of a batch after its decompression.", 1024
    )
    limits: LimitsConfig = LimitsConfig()
    classic: ClassicGroupConfig = ClassicGroupConfig()
    consumer: ConsumerGroupConfig = ConsumerGroupConfig()
    share: ShareGroupConfig = ShareGroupConfig()
    streams: StreamsGroupConfig = StreamsGroupConfig()
    log: LogConfig = LogConfig()  # the defaults for topics

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> BrokerConfig:
        """Create the settings from names and values.

        Unknown names are ignored (names.py warns about them). Raises ConfigError for an invalid value.
        """
        values: dict[str, Any] = {}
        log_values: dict[str, Any] = {}
        in_order = [name for name in OVERRIDDEN if name in properties]
        in_order += [name for name in properties if name not in OVERRIDDEN]
        for given in in_order:  # An error message contains `given`: the name that the user wrote.
            text, name = properties[given], ALIASES.get(given, given)
            if name in TIMES:
                finest, unit = TIMES[name]
                key = TOPIC_KEYS[LOG_DEFAULTS[finest]]
                log_values[key.field] = _milliseconds(name, text, unit, key)
            elif name in LOG_DEFAULTS:
                key = TOPIC_KEYS[LOG_DEFAULTS[name]]
                log_values[key.field] = key.parse(text, given)
            elif name in BROKER_KEYS:
                values[name] = BROKER_KEYS[name].parse(text, given)
            if log_values.get("retention_ms") == 0:  # A topic may have retention.ms=0, a broker may not.
                raise ConfigError("the value must be at least 1, or -1 to keep records forever", given, text)
        log_values.pop(NO_FIELD, None)
        limit = cls.declared["max_decompressed"]
        log = LogConfig(**log_values, max_decompressed=values.get(limit.name, limit.default))
        return cls.of(values, log=log)


NO_FIELD = ""  # `ConfigKey.field` of a setting whose value no field contains
TOPIC_KEYS = {key.name: key for key in no_effect.TOPIC} | {
    (name := f.name.replace("_", ".")): ConfigKey.of(name, f) for f in dataclasses.fields(LogConfig) if f.metadata
}
BROKER_KEYS = {
    key.name: key for key in [*no_effect.BROKER, *no_effect.RATES, *SECURITY, *BrokerConfig.all_declared()]
}


def topic_key(name: str) -> ConfigKey:
    """Return the declaration of a topic's setting. Raises ConfigError if topics have no such setting."""
    if name not in TOPIC_KEYS:
        raise ConfigError(f"unknown topic config {name!r}{nearest(name, TOPIC_KEYS)}")
    return TOPIC_KEYS[name]


def log_config(configs: Mapping[str, str], default: LogConfig) -> LogConfig:
    """Return all settings of a topic: the values in `configs`, and the values of `default` for all other settings.

    Raises ConfigError.
    """
    values: dict[str, Any] = {}
    for name, text in configs.items():
        key = topic_key(name)
        values[key.field] = key.parse(text)
    values.pop(NO_FIELD, None)
    return dataclasses.replace(default, **values)


def check_consistency(config: LogConfig) -> None:
    """Raise ConfigError if two of a topic's settings contradict each other."""
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError(
            f"the value must be at most max.compaction.lag.ms={config.max_compaction_lag_ms}",
            "min.compaction.lag.ms",
            str(config.min_compaction_lag_ms),
        )


def _milliseconds(name: str, text: str, unit: int, key: ConfigKey) -> int:
    """Return a time in ms. The text `text` is a number of time units, and one unit is `unit` ms long.

    For example, the text "2" with the unit 3,600,000 (an hour) becomes 7,200,000. A negative number means "forever"
    and stays the same. Raises ConfigError if `text` is not a valid value of the setting `name`, or if the time is
    longer than `key.maximum` ms.
    """
    time = key.parse(text, name)
    assert isinstance(time, int)
    if time * unit > key.maximum:
        raise ConfigError(f"the value must be at most {int(key.maximum) // unit}", name, text)
    return time * unit if time > 0 else time


def _broker_configs() -> Iterator[ConfigKey]:
    """Return the declarations of all broker settings, one declaration for each name of a setting.

    For example, log.retention.hours, log.retention.minutes and log.retention.ms are names of the same setting. As in
    Kafka, only log.retention.hours has a default. A default of log.retention.ms would override a value that a user
    sets in hours.
    """
    yield from BROKER_KEYS.values()
    finest_names = {finest for finest, _ in TIMES.values()}
    for name, topic_name in LOG_DEFAULTS.items():
        key = TOPIC_KEYS[topic_name]
        default = None if name in finest_names else key.default
        yield key._replace(name=name, default=default, dynamic=True)
    for name, (finest, unit) in TIMES.items():
        key = TOPIC_KEYS[LOG_DEFAULTS[finest]]
        default = key.default // unit if finest in finest_names else None
        finest_names.discard(finest)
        type = ConfigType.INT if unit > 1 else key.type
        yield key._replace(name=name, type=type, default=default, doc=f"{key.doc} ({finest} overrides it)")
    for name, other in ALIASES.items():
        yield BROKER_KEYS[other]._replace(name=name, kafka_default=KAFKA_DEFAULTS_OF_ALIASES[name])


BROKER_CONFIGS = {key.name: key for key in _broker_configs()}
