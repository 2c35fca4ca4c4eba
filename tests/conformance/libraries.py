"""The brokers with which HMB's client is tested, and the features of each broker.

    hmb         HMB, as a process
    kafka43     Apache Kafka 4.3.0
    kafka082    Apache Kafka 0.8.2.2, without headers, timestamps, consumer groups on brokers and idempotent producers

All three brokers create a topic with three partitions when a client requests the topic's metadata. In the protocol of
Kafka 0.8.2.2, a client cannot create a topic in another way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hmb.bench import peers
from hmb.client import TopicPartition

PARTITIONS = 3
MAX_MESSAGE = 100_000  # bytes
CONFIG = {
    "num.partitions": str(PARTITIONS),
    "message.max.bytes": str(MAX_MESSAGE),
    "offsets.topic.num.partitions": "3",
}
QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
}
OF_KIND = {"hmb": QUICK_GROUPS | {"log.flush.acks.all": "false"}, "kafka43": QUICK_GROUPS}
KINDS: dict[str, type[peers.Peer]] = {"hmb": peers.Hmb, "kafka43": peers.Kafka43, "kafka082": peers.Kafka082}
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Subject:
    """A running broker and its features."""

    kind: str
    peer: peers.Peer

    @property
    def bootstrap(self) -> str:
        return self.peer.bootstrap

    @property
    def is_new(self) -> bool:
        """Whether the broker supports record batches, timestamps, groups and admin requests.

        Of the tested brokers, only Kafka 0.8.2.2 lacks these features.
        """
        return self.kind != "kafka082"

    def topic(self) -> str:
        """Return a name for a new topic."""
        return f"topic-{next(_NUMBERS)}"


def make(kind: str, directory: Path | None = None, port: int | None = None) -> peers.Peer:
    return KINDS[kind](directory, port=port, config=CONFIG | OF_KIND.get(kind, {}))


def running(kind: str) -> Iterator[Subject]:
    with make(kind) as peer:
        yield Subject(kind, peer)


def partitions(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]
