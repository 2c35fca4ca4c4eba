"""The topics that a broker keeps for itself, and that clients only read: `Topic.INTERNAL_TOPICS` in Kafka."""

from __future__ import annotations

from hmb.broker.config import BrokerConfig
from hmb.coordinator.journal import OFFSETS_TOPIC

INTERNAL_TOPICS = (OFFSETS_TOPIC, "__transaction_state", "__share_group_state")


def offsets_topic_configs(config: BrokerConfig) -> dict[str, str]:
    """The settings with which `__consumer_offsets` is made, and is taken over from another broker."""
    return {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.offsets_segment_bytes),
    }
