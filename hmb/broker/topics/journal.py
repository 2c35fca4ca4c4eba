"""The internal topics in which the coordinators store their state, for example `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Mapping

from hmb.broker.config.broker import BrokerConfig
from hmb.broker.topics.internal import internal_topics
from hmb.broker.topics.registry import Topics
from hmb.broker.topics.topic import Topic
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.log import Log


class JournalTopic:
    """The internal topic of one coordinator.

    The broker creates the topic only when a coordinator first uses it, so a new broker starts fast.
    """

    def __init__(self, topics: Topics, config: BrokerConfig, name: str) -> None:
        self.name = name
        self._topics = topics
        self._internal = internal_topics(config)[name]
        self._known: tuple[Topic | None, Mapping[int, Log]] = None, {}

    def logs(self) -> Mapping[int, Log]:
        """Return the logs of the topic's partitions, or an empty mapping if the topic does not exist.

        If a client adds partitions to the topic, this method ignores them until the broker starts again. The reason:
        the broker stores each group in one partition. The number of this partition is the hash of the group's name,
        modulo the number of partitions. If the number of partitions changed now, a running group would suddenly belong
        to another partition.
        """
        topic = self._topics.get(self.name)
        if topic is not self._known[0]:
            self._known = topic, {} if topic is None else topic.partitions
        return self._known[1]

    def make(self) -> None:
        """Create the topic if it does not exist. Raises KafkaError."""
        try:
            self._topics.create(self.name, self._internal.partitions, self._internal.configs)
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # This code means that another thread was faster.
                raise
