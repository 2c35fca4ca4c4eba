"""The internal topics, which clients may only read: `Topic.INTERNAL_TOPICS` in Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hmb.broker.config.broker_config import BrokerConfig
from hmb.protocol.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC


class OwnTopic(NamedTuple):
    """The number of partitions and the settings of an internal topic, whichever broker has created it."""

    partitions: int
    configs: Mapping[str, str]


def own_topics(config: BrokerConfig) -> dict[str, OwnTopic]:
    """Return the topics of the coordinators' journals, by name."""
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
