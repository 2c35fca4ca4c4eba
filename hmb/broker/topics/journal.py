"""The internal topics in which the coordinators store their state: `__consumer_offsets` and `__transaction_state`."""

from __future__ import annotations

from collections.abc import Mapping

from hmb.broker.config.broker import BrokerConfig
from hmb.broker.topics.internal import own_topics
from hmb.broker.topics.registry import Topics
from hmb.broker.topics.topic import Topic
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.log import Log


class JournalTopic:
    """The internal topic of one coordinator.

    The topic is created when it is first used, so that a new broker starts fast.
    """

    def __init__(self, topics: Topics, config: BrokerConfig, name: str) -> None:
        self.name = name
        self._topics = topics
        self._own = own_topics(config)[name]
        self._known: tuple[Topic | None, Mapping[int, Log]] = None, {}

    def logs(self) -> Mapping[int, Log]:
        """Return the logs of the topic's partitions, or an empty mapping if the topic does not exist.

        The coordinator computes a group's partition: the hash of the group's name, modulo the number of partitions.
        Therefore the number of partitions must not change while the broker runs. If a client adds partitions to the
        topic, this method returns the new partitions only after the next start of the broker.
        """
        topic = self._topics.get(self.name)
        if topic is not self._known[0]:
            self._known = topic, {} if topic is None else topic.partitions
        return self._known[1]

    def make(self) -> None:
        """Create the topic if it does not exist. Raises KafkaError."""
        try:
            self._topics.create(self.name, self._own.partitions, self._own.configs)
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # This code means that another thread was faster.
                raise
