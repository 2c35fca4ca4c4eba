"""The topic `__consumer_offsets`, as the group coordinator's journal needs it."""

from __future__ import annotations

from collections.abc import Mapping

from hmb.broker.config import BrokerConfig
from hmb.broker.internal_topics import offsets_topic_configs
from hmb.broker.topics import Topic, Topics
from hmb.coordinator.journal import OFFSETS_TOPIC
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.log import Log


class OffsetsTopic:
    """Made at first use: a broker that nobody uses groups of has no such topic, and starts the faster for it."""

    def __init__(self, topics: Topics, config: BrokerConfig) -> None:
        self._topics = topics
        self._config = config
        self._known: tuple[Topic | None, Mapping[int, Log]] = None, {}

    def logs(self) -> Mapping[int, Log]:
        """Of the partitions that it had when it was first seen; empty where there is no topic.

        A group is found by the number of partitions, so those that are added later count after the next start only.
        """
        topic = self._topics.get(OFFSETS_TOPIC)
        if topic is not self._known[0]:
            self._known = topic, {} if topic is None else topic.partitions
        return self._known[1]

    def make(self) -> None:
        """Make it where there is none.  Raises KafkaError."""
        try:
            self._topics.create(OFFSETS_TOPIC, self._config.offsets_partitions, offsets_topic_configs(self._config))
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # another thread was faster
                raise
