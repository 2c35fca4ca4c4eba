"""Settings of Kafka that HMB's broker accepts, stores and returns, but does not use.

Kafka has settings for features that HMB does not have, for example for replicas, racks and tiered storage. HMB's broker
accepts these settings anyway, because some clients create topics with them, and some tools set them for brokers. If the
broker returned an error, these clients and tools would fail.
"""

from __future__ import annotations

from typing import Any

from hmb.broker.config.keys import AS_IN_KAFKA, ConfigKey
from hmb.protocol.enums import INT32_MAX, INT64_MAX, ConfigType

ONE_BROKER = "This setting has no effect, because the cluster has one broker."
NO_TIERS = "This setting has no effect, because HMB has no tiered storage."
REPLICA = r"\*|\d+:\d+"  # an item is "*" (all replicas), or a partition and a broker, such as "0:1"
THREADS = "This setting has no effect, because each connection has a thread."
SYSTEM = "This setting has no effect, because the operating system decides."


def _int(
    name: str, default: int, doc: str, minimum: float = 1, dynamic: bool = False, kafka_default: Any = AS_IN_KAFKA
) -> ConfigKey:
    return ConfigKey(
        name, ConfigType.INT, default, doc, minimum, INT32_MAX, dynamic=dynamic, kafka_default=kafka_default
    )


def _long(name: str, default: int | None, doc: str, minimum: float = -2, dynamic: bool = False) -> ConfigKey:
    return ConfigKey(name, ConfigType.LONG, default, doc, minimum, INT64_MAX, dynamic=dynamic)


def _short(name: str, default: int, doc: str, kafka_default: int) -> ConfigKey:
    return ConfigKey(name, ConfigType.SHORT, default, doc, 1, 2**15 - 1, kafka_default=kafka_default)


def _bool(name: str, default: bool, doc: str, dynamic: bool = False) -> ConfigKey:
    return ConfigKey(name, ConfigType.BOOLEAN, default, doc, dynamic=dynamic)


def _string(name: str, default: str | None, doc: str) -> ConfigKey:
    return ConfigKey(name, ConfigType.STRING, default, doc)


def _list(
    name: str, default: str | None, doc: str, pattern: str = "", kafka_default: Any = AS_IN_KAFKA
) -> ConfigKey:
    return ConfigKey(name, ConfigType.LIST, default, doc, pattern=pattern, kafka_default=kafka_default)


TOPIC = [
    _list("leader.replication.throttled.replicas", "", ONE_BROKER, REPLICA),
    _list("follower.replication.throttled.replicas", "", ONE_BROKER, REPLICA),
    _int("min.insync.replicas", 1, ONE_BROKER),
    _bool("unclean.leader.election.enable", False, ONE_BROKER),
    ConfigKey("remote.storage.enable", ConfigType.BOOLEAN, False, "HMB has no tiered storage.", choices=("false",)),
    _bool("remote.log.copy.disable", False, NO_TIERS),
    _bool("remote.log.delete.on.disable", False, NO_TIERS),
    _long("local.retention.ms", -2, NO_TIERS),
    _long("local.retention.bytes", -2, NO_TIERS),
]
BROKER = [
    _int("default.replication.factor", 1, ONE_BROKER),
    _short("offsets.topic.replication.factor", 1, ONE_BROKER, kafka_default=3),
    _short("transaction.state.log.replication.factor", 1, ONE_BROKER, kafka_default=3),
    _int("transaction.state.log.min.isr", 1, ONE_BROKER, kafka_default=2),
    _short("share.coordinator.state.topic.replication.factor", 1, ONE_BROKER, kafka_default=3),
    _short("share.coordinator.state.topic.min.isr", 1, ONE_BROKER, kafka_default=2),
    _int("num.replica.fetchers", 1, ONE_BROKER, dynamic=True),
    _bool("auto.leader.rebalance.enable", True, ONE_BROKER),
    _bool("controlled.shutdown.enable", True, ONE_BROKER),
    _string("broker.rack", None, ONE_BROKER),
    _string("inter.broker.listener.name", None, ONE_BROKER),
    _list("controller.listener.names", None, ONE_BROKER),
    _list("controller.quorum.voters", "", ONE_BROKER),
    _list("controller.quorum.bootstrap.servers", "", ONE_BROKER),
    _list("process.roles", "broker,controller", ONE_BROKER, kafka_default=None),
    _bool("delete.topic.enable", True, "This setting has no effect: clients can always delete topics."),
    _bool("log.cleaner.enable", True, "This setting has no effect: compaction is always enabled."),
    _int("log.cleaner.threads", 1, "This setting has no effect: one thread compacts all logs.", dynamic=True),
    _int("num.recovery.threads.per.data.dir", 2, "This setting has no effect: one thread checks logs.", dynamic=True),
    _int("num.network.threads", 3, THREADS, dynamic=True),
    _int("background.threads", 10, THREADS, dynamic=True),
    _int("socket.send.buffer.bytes", 102_400, SYSTEM, -1),
    _int("socket.receive.buffer.bytes", 102_400, SYSTEM, -1),
]
# Kafka's tools set these limits while they move replicas. The DescribeConfigs response contains one of them only if a
# client has set it.
RATES = [
    _long("leader.replication.throttled.rate", None, ONE_BROKER, 0, dynamic=True),
    _long("follower.replication.throttled.rate", None, ONE_BROKER, 0, dynamic=True),
    _long("replica.alter.log.dirs.io.max.bytes.per.second", None, ONE_BROKER, 0, dynamic=True),
]
