"""The internal topics in which the coordinators keep their journals."""

from __future__ import annotations

from collections.abc import Mapping

from hmb.broker.config.broker_config import BrokerConfig
from hmb.broker.topics.internal import own_topics
from hmb.broker.topics.registry import Topics
from hmb.broker.topics.topic import Topic
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.log import Log


class JournalTopic:
    """An internal topic of a coordinator. It is created at its first use, so a broker without groups starts faster."""

    def __init__(self, topics: Topics, config: BrokerConfig, name: str) -> None:
        self.name = name
        self._topics = topics
        self._own = own_topics(config)[name]
        self._known: tuple[Topic | None, Mapping[int, Log]] = None, {}

    def logs(self) -> Mapping[int, Log]:
        """Return the logs of the partitions that the topic had when the coordinator first used it.

        The result is empty if the topic does not exist. The number of partitions determines which partition stores the
        state of a group. So the coordinator uses partitions that are added later only after the next start.
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
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # Another thread may have created it.
                raise
