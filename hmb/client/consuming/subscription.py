"""Declares what a consumer subscribes to (names of topics, or a pattern for names), and finds these topics.

The settings `pattern` and `exclude` are regular expressions for names of topics. The consumer reads the topics whose
names match `pattern` and do not match `exclude`. Without `pattern`, it reads all topics that do not match `exclude`. An
expression must match the whole name. Kafka's internal topics are always left out.

Kafka 0.7 called a regular expression for topic names a *topic filter*. There were two kinds of topic filters. A
*whitelist* selected topics, as the setting `pattern` does. A *blacklist* left topics out, as the setting
`exclude` does.

Topics are created and deleted, and topics get more partitions. Brokers do not notify consumers of these changes, so the
client requests the metadata again every `metadata_max_age` seconds. All records of a new partition were written after
the consumer had started. So the consumer reads the partition from its first record.

Source: Kafka 0.7 design, "High-level API" (`TopicFilter`).
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass

from hmb.client.connection import ConnectionFailed
from hmb.client.consuming.settings import Pattern
from hmb.client.metadata import Cluster, TopicMetadata, no_such_partition
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import INTERNAL_TOPICS, TopicPartition, check_topic_name

LOGGER = logging.getLogger(__name__)

RETRY_AFTER = 1.0  # seconds until the next search, after a search that failed or did not find all topics


@dataclass(frozen=True, slots=True)
class Subscription:
    """The topics that a consumer wants to read: a list of names, or patterns that match names."""

    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    exclude: re.Pattern[str] | None = None

    @classmethod
    def to(cls, topics: Iterable[str], pattern: Pattern | None, exclude: Pattern | None) -> Subscription:
        """Check the arguments, and return the subscription.

        - Raises TypeError if an element of `topics` is a collection, for example a list of names.
        - Raises KafkaError with INVALID_TOPIC_EXCEPTION if a name is not valid.
        - Raises ValueError if the arguments contain both names and patterns. Also raises ValueError if a pattern is not
          a regular expression.
        """
        topics = tuple(topics)
        for name in topics:
            if isinstance(name, list | tuple | set | dict):
                raise TypeError(
                    f'each topic must be a separate argument, as in subscribe("a", "b"), '
                    f"but {name!r} is a {type(name).__name__}"
                )
            check_topic_name(name)
        names = tuple(dict.fromkeys(topics))
        if names and (pattern is not None or exclude is not None):
            raise ValueError("a consumer can subscribe to topics by name or by pattern, but not in both ways")
        return cls(names, _compiled("pattern", pattern), _compiled("exclude", exclude))

    def __bool__(self) -> bool:
        return bool(self.topics) or self.is_by_pattern

    @property
    def is_by_pattern(self) -> bool:
        return self.pattern is not None or self.exclude is not None

    def matches(self, topic: TopicMetadata) -> bool:
        """Return whether the name of this topic matches the patterns of the subscription."""
        if topic.is_internal or topic.name in INTERNAL_TOPICS:
            return False
        if self.exclude is not None and self.exclude.fullmatch(topic.name):
            return False
        return self.pattern is None or self.pattern.fullmatch(topic.name) is not None


def _compiled(argument: str, pattern: Pattern | None) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern) if pattern is not None else None
    except re.error as error:
        raise ValueError(f"{argument} {pattern!r} is not a regular expression: {error}") from None


class Discovery:
    """Finds the topics and partitions of a subscription, and later the new topics and partitions."""

    def __init__(
        self,
        cluster: Cluster,
        subscription: Subscription,
        numbers: Iterable[int] | None,
        max_age: float,
        *,
        wait_for_topics: bool = False,
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._wait_for_topics = wait_for_topics  # whether to wait for a topic that does not exist yet
        self._numbers = None if numbers is None else sorted(set(numbers))
        self._max_age = max_age
        self._refresh_at = 0.0  # the earliest time of the next refresh (time.monotonic())
        self._topics: dict[str, TopicMetadata] = {}  # the topics that the last refresh found

    @property
    def is_by_pattern(self) -> bool:
        return self._subscription.is_by_pattern

    @property
    def names(self) -> set[str]:
        """The names of the topics that the last call of `refresh` or `new_partitions` found."""
        return set(self._topics)

    def refresh(self) -> list[TopicPartition]:
        """Find the topics of the subscription. Return the partitions that are new since the previous call.

        Raises KafkaError if a topic of the subscription does not exist, unless `wait_for_topics` is set.
        """
        # The requests below can raise an error. So set the time of the next attempt before the requests.
        self._refresh_at = time.monotonic() + min(self._max_age, RETRY_AFTER)
        if self.is_by_pattern:
            topics = [topic for topic in self._cluster.topics() if self._subscription.matches(topic)]
        else:
            found = [self._named(name) for name in self._subscription.topics]
            topics = [topic for topic in found if topic is not None]
        new = self._new_partitions(topics)
        self._refresh_at = time.monotonic() + (RETRY_AFTER if self._is_incomplete else self._max_age)
        return new

    def new_partitions(self) -> list[TopicPartition]:
        """Return the partitions that are new since the previous call.

        The consumer calls this method in each `poll` that finds no record in the buffer.

        If the subscription is a pattern, the method searches for topics every `metadata_max_age` seconds. While the
        consumer waits for a topic that does not exist yet, the method searches every RETRY_AFTER seconds. In all other
        cases, the method sends no request, and uses the metadata that the client has stored.
        """
        if self.is_by_pattern or self._is_incomplete:
            if time.monotonic() < self._refresh_at:
                return []
            try:
                return self.refresh()
            except (ConnectionFailed, KafkaError) as error:
                LOGGER.warning("the search for new topics failed and is repeated later: %s", error)
                return []
        known = (self._cluster.last_known(name) for name in self._subscription.topics)
        return self._new_partitions([topic for topic in known if topic is not None])

    @property
    def _is_incomplete(self) -> bool:
        """True if a subscribed topic does not exist yet, and the consumer waits for this topic."""
        return self._wait_for_topics and len(self._topics) < len(self._subscription.topics)

    def _named(self, name: str) -> TopicMetadata | None:
        try:
            return self._cluster.topic(name)
        except KafkaError as error:
            if self._wait_for_topics and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return None
            raise

    def _new_partitions(self, topics: list[TopicMetadata]) -> list[TopicPartition]:
        found: list[TopicPartition] = []
        for topic in topics:
            before = self._topics.get(topic.name)
            if topic is not before:
                old = before.leaders if before is not None else ()
                found += [it for it in self._partitions(topic) if it.partition not in old]
        self._topics = {topic.name: topic for topic in topics}
        return found

    def _partitions(self, topic: TopicMetadata) -> list[TopicPartition]:
        """Return the partitions of a topic.

        If the consumer's setting `partitions` contains partition numbers, return only the partitions with these
        numbers.
        """
        for number in self._numbers or ():
            if number not in topic.leaders and not self.is_by_pattern:
                raise no_such_partition(topic, number)
        numbers = topic.leaders if self._numbers is None else self._numbers
        return [TopicPartition(topic.name, number) for number in numbers if number in topic.leaders]
