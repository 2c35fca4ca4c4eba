"""The topics in which the coordinators keep their journals."""

from __future__ import annotations

from collections.abc import Mapping

from hmb.broker.config.broker_config import BrokerConfig
from hmb.broker.topics.internal import own_topics
from hmb.broker.topics.registry import Topics
from hmb.broker.topics.topic import Topic
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.log import Log


class JournalTopic:
    """Made at first use: a broker that nobody uses groups or transactions of has no such topic, and starts faster."""

    def __init__(self, topics: Topics, config: BrokerConfig, name: str) -> None:
        self.name = name
        self._topics = topics
        self._own = own_topics(config)[name]
        self._known: tuple[Topic | None, Mapping[int, Log]] = None, {}

    def logs(self) -> Mapping[int, Log]:
        """Of the partitions that it had when it was first seen; empty where there is no topic.

        What is kept in it is found by the number of partitions, so those that are added later count after the next
        start only.
        """
        topic = self._topics.get(self.name)
        if topic is not self._known[0]:
            self._known = topic, {} if topic is None else topic.partitions
        return self._known[1]

    def make(self) -> None:
        """Make it where there is none.  Raises KafkaError."""
        try:
            self._topics.create(self.name, self._own.partitions, self._own.configs)
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # another thread was faster
                raise
