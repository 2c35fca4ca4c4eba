"""The table of topics: it finds a topic by its name, by its id, or by its metric name (`_` in place of `.`).

Kafka's metrics replace `.` by `_` in a topic's name. Two topics whose names differ only in these characters would share
their metrics, so the broker allows only one of them. For example, a client cannot create `orders.eu` while `orders_eu`
exists.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from hmb.broker.topics.store import StoredTopic
from hmb.broker.topics.topic import Topic, metric_name
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.state.partition_directory import KAFKA_METADATA_TOPIC
from hmb.uuids import encode_uuid


class TopicTable:
    """The topics of a broker.

    A thread that changes the table holds the lock of `Topics`. Readers take no lock.

    - `_by_name` and `_by_id` contain the same topics.
    - `_by_metric_name` finds a topic by the name that Kafka's metrics use: the topic's name with `_` in place of
      each `.`.
    - The topics `orders.eu` and `orders_eu` would have the same name in metrics, so HMB never creates both topics.
      If another broker has created both in the data directory, `_by_metric_name` contains only one of them.
    """

    def __init__(self, topics: Iterable[Topic]) -> None:
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}
        self._by_metric_name: dict[str, Topic] = {}
        for topic in topics:
            self.add(topic)

    def all(self) -> list[Topic]:
        """Return all topics, sorted by name."""
        return [topic for _, topic in sorted(self._by_name.items())]

    def get(self, name: str) -> Topic | None:
        """Return the topic with this name, or None."""
        return self._by_name.get(name)

    def find(self, name: str | None, id: uuid.UUID) -> Topic:
        """Return a topic by its id, or by its name if `id` is NO_TOPIC_ID.

        Raises UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION.
        """
        if id.int or name is None:
            topic = self._by_id.get(id)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {encode_uuid(id)}")
            return topic
        topic = self._by_name.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return topic

    def add(self, topic: Topic) -> None:
        """Add a topic, or do nothing if the table already contains this topic."""
        self._by_name[topic.name] = self._by_id[topic.id] = self._by_metric_name[metric_name(topic.name)] = topic

    def remove(self, topic: Topic) -> None:
        """Remove a topic."""
        del self._by_name[topic.name], self._by_id[topic.id]
        # If HMB did not create the topics, two topics such as `a.b` and `a_b` can share one metric name. Without None,
        # the removal of the second topic would raise KeyError.
        self._by_metric_name.pop(metric_name(topic.name), None)

    def check_is_there(self, topic: Topic) -> None:
        """Raise UNKNOWN_TOPIC_OR_PARTITION if the topic is no longer in the table."""
        if self._by_id.get(topic.id) is not topic:  # A newer topic may have the same name.
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name!r} is already deleted")

    def check_is_free(self, name: str) -> None:
        """Check that a new topic can have this name.

        - Raises TOPIC_ALREADY_EXISTS if a topic already has this name.
        - Raises INVALID_TOPIC_EXCEPTION if the name differs from the name of an existing topic only in "." and "_". For
          example, a new topic cannot have the name "a.b" if the topic "a_b" exists.
        - Raises INVALID_REQUEST if the name is reserved for the log of a KRaft controller.
        """
        if name == KAFKA_METADATA_TOPIC:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name!r} is the name of a KRaft controller's own log")
        if name in self._by_name:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists")
        if (other := self._by_metric_name.get(metric_name(name))) is not None:
            why = f'the names {name!r} and {other.name!r} differ only in the characters "." and "_"'
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, why)

    def stored(self) -> dict[str, StoredTopic]:
        """Return a dict: topic name -> the data about the topic that the file topics.json contains."""
        return {name: StoredTopic(topic.count, topic.configs) for name, topic in self._by_name.items()}
