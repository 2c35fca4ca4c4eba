"""The topic `__consumer_offsets`, as the group coordinator's journal needs it."""

from __future__ import annotations

from collections.abc import Mapping

from hmb.broker.config import BrokerConfig
from hmb.broker.internal_topics import offsets_topic_configs
from hmb.broker.topics import Topics
from hmb.coordinator.journal import OFFSETS_TOPIC
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.log import Log


class OffsetsTopic:
    """Made at first use: a broker that nobody uses groups of has no such topic, and starts the faster for it."""

    def __init__(self, topics: Topics, config: BrokerConfig) -> None:
        self._topics = topics
        self._config = config

    def logs(self) -> Mapping[int, Log]:
        """Of its partitions; empty where there is no topic."""
        topic = self._topics.get(OFFSETS_TOPIC)
        return NO_LOGS if topic is None else topic.partitions

    def make(self) -> None:
        """Make it where there is none.  Raises KafkaError."""
        try:
            self._topics.create(OFFSETS_TOPIC, self._config.offsets_partitions, offsets_topic_configs(self._config))
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # another thread was faster
                raise


NO_LOGS: Mapping[int, Log] = {}
