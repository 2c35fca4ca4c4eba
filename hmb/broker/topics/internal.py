"""The internal topics: topics that the broker itself writes, and that clients may only read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hmb.broker.config.broker import BrokerConfig
from hmb.protocol.topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC


class InternalTopicConfig(NamedTuple):
    """The number of partitions and the settings that this broker uses when it creates an internal topic."""

    partitions: int
    configs: Mapping[str, str]


def internal_topics(config: BrokerConfig) -> dict[str, InternalTopicConfig]:
    """Return the number of partitions and the settings of each internal topic, by the topic's name."""
    return {
        OFFSETS_TOPIC: InternalTopicConfig(
            config.offsets_partitions,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_segment_bytes),
            },
        ),
        TRANSACTIONS_TOPIC: InternalTopicConfig(
            config.transactions_partitions,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "segment.bytes": str(config.transactions_segment_bytes),
                "unclean.leader.election.enable": "false",
                "min.insync.replicas": "1",
            },
        ),
        SHARE_STATE_TOPIC: InternalTopicConfig(
            config.share.state_partitions,
            {
                "cleanup.policy": "delete",
                "compression.type": "uncompressed",
                "segment.bytes": str(config.share.state_segment_bytes),
                "retention.ms": "-1",
                "min.insync.replicas": "1",
            },
        ),
    }
