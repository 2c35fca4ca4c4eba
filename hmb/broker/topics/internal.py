"""The topics that a broker keeps for itself, and that clients only read: `Topic.INTERNAL_TOPICS` in Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hmb.broker.config.broker_config import BrokerConfig
from hmb.protocol.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC


class OwnTopic(NamedTuple):
    """As it is made; with these settings it is taken over from another broker, too."""

    partitions: int
    configs: Mapping[str, str]


def own_topics(config: BrokerConfig) -> dict[str, OwnTopic]:
    """The journals of the coordinators, by name."""
    return {
        OFFSETS_TOPIC: OwnTopic(
            config.offsets_partitions,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_segment_bytes),
            },
        ),
        TRANSACTIONS_TOPIC: OwnTopic(
            config.transactions_partitions,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "segment.bytes": str(config.transactions_segment_bytes),
                "unclean.leader.election.enable": "false",
                "min.insync.replicas": "1",
            },
        ),
    }
