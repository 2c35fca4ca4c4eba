"""What a consumer wants to read: topics by their names, or by a pattern that finds those that do not exist yet.

Kafka 0.7 called them topic filters: a *whitelist* says by a regular expression what to read, a *blacklist* what not to.
Here they are `pattern` and `exclude`, and the two go together: of the topics that match the one, those that do not
match the other. An expression has to match the whole name, and Kafka's internal topics are never meant by one.

Topics come and go, and get more partitions, without anybody telling the consumer: it looks at the metadata anew every
`metadata_max_age` seconds. A partition that it finds then is read from its beginning, whatever the consumer began with:
all that is in it came later than the consumer.
"""

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

log = logging.getLogger(__name__)

RETRY_AFTER = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Subscription:
    """Names, or what names have to look like."""

    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    exclude: re.Pattern[str] | None = None

    @classmethod
    def to(cls, topics: Iterable[str], pattern: Pattern | None, exclude: Pattern | None) -> "Subscription":
        """ValueError for what cannot be wanted, KafkaError for what is no topic's name."""
        topics = tuple(topics)
        for name in topics:
            if isinstance(name, list | tuple | set | dict):
                raise TypeError(f'topics are one argument each, "a", "b", and not in a {type(name).__name__}: {name!r}')
            check_topic_name(name)
        names = tuple(dict.fromkeys(topics))
        if names and (pattern is not None or exclude is not None):
            raise ValueError("topics are subscribed to by name or by pattern, not both")
        return cls(names, _compiled("pattern", pattern), _compiled("exclude", exclude))

    def __bool__(self) -> bool:
        return bool(self.topics) or self.is_by_pattern

    @property
    def is_by_pattern(self) -> bool:
        return self.pattern is not None or self.exclude is not None

    def wants(self, topic: TopicMetadata) -> bool:
        """Whether the patterns mean this topic."""
        if topic.is_internal or topic.name in INTERNAL_TOPICS:
            return False
        if self.exclude is not None and self.exclude.fullmatch(topic.name):
            return False
        return self.pattern is None or self.pattern.fullmatch(topic.name) is not None


def _compiled(what: str, pattern: Pattern | None) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern) if pattern is not None else None
    except re.error as error:
        raise ValueError(f"{what} {pattern!r} is no regular expression: {error}") from None


class Discovery:
    """Finds the topics and partitions of a subscription, and those that come later."""

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
        self._wait_for_topics = wait_for_topics  # Whether a named topic need not exist yet.
        self._numbers = None if numbers is None else sorted(set(numbers))
        self._max_age = max_age
        self._look_at = 0.0  # time.monotonic()
        self._topics: dict[str, TopicMetadata] = {}  # as they were when one last looked

    @property
    def is_by_pattern(self) -> bool:
        return self._subscription.is_by_pattern

    @property
    def names(self) -> set[str]:
        """The topics that are wanted, as of the last look."""
        return set(self._topics)

    def look(self) -> list[TopicPartition]:
        """Find the topics of the subscription. Return the partitions that are new since the last look.

        Raises KafkaError if a named topic does not exist, unless this waits for topics.
        """
        self._look_at = time.monotonic() + min(self._max_age, RETRY_AFTER)  # if it fails
        if self.is_by_pattern:
            topics = [topic for topic in self._cluster.topics() if self._subscription.wants(topic)]
        else:
            found = [self._named(name) for name in self._subscription.topics]
            topics = [topic for topic in found if topic is not None]
        news = self._news(topics)
        self._look_at = time.monotonic() + (RETRY_AFTER if self._is_incomplete else self._max_age)
        return news

    def news(self) -> list[TopicPartition]:
        """Do the same, but only if it is time or if the metadata are new anyway: this may be called all the time."""
        if self.is_by_pattern or self._is_incomplete:
            if time.monotonic() < self._look_at:
                return []
            try:
                return self.look()
            except (ConnectionFailed, KafkaError) as error:
                log.warning("no look at the topics for now: %s", error)
                return []
        known = (self._cluster.last_known(name) for name in self._subscription.topics)
        return self._news([topic for topic in known if topic is not None])

    @property
    def _is_incomplete(self) -> bool:
        """Whether a named topic does not exist yet."""
        return self._wait_for_topics and len(self._topics) < len(self._subscription.topics)

    def _named(self, name: str) -> TopicMetadata | None:
        try:
            return self._cluster.topic(name)
        except KafkaError as error:
            if self._wait_for_topics and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return None
            raise

    def _news(self, topics: list[TopicMetadata]) -> list[TopicPartition]:
        found: list[TopicPartition] = []
        for topic in topics:
            before = self._topics.get(topic.name)
            if topic is not before:
                old = before.leaders if before is not None else ()
                found += [it for it in self._partitions(topic) if it.partition not in old]
        self._topics = {topic.name: topic for topic in topics}
        return found

    def _partitions(self, topic: TopicMetadata) -> list[TopicPartition]:
        """The topic's partitions, or the ones wanted."""
        for number in self._numbers or ():
            if number not in topic.leaders and not self.is_by_pattern:
                raise no_such_partition(topic, number)
        numbers = topic.leaders if self._numbers is None else self._numbers
        return [TopicPartition(topic.name, number) for number in numbers if number in topic.leaders]
