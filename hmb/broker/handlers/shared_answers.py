"""Parts of responses that several handlers share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Protocol, TypeVar
from uuid import UUID

from hmb.broker.deferred import Deferred
from hmb.broker.errors import CloseConnection
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.journal.partition import Pending
from hmb.protocol.errors import KafkaError
from hmb.protocol.schema import Response

MOST_TIMES = 2


class TopicAnswer(Protocol):
    """A topic in the response to OffsetCommit or OffsetDelete."""

    name: str
    partitions: list[Any]


T = TypeVar("T", bound=TopicAnswer)
R = TypeVar("R", bound=Response)


def merged(refused: Sequence[T], answered: Sequence[T]) -> list[T]:
    """Merge two lists of topics into the topics of a response, as Kafka does. Each topic gets one entry.

    `refused` contains the partitions that the handler has refused. They come first in the entry of their topic.
    `answered` contains the partitions that the group has answered. If no partition was refused, the result is
    `answered`, which may contain a topic twice.
    """
    if not refused:
        return list(answered)
    topics: dict[tuple[str, UUID | None], T] = {}
    for answer in (*refused, *answered):
        known = topics.setdefault((answer.name, getattr(answer, "topic_id", None)), answer)
        if known is not answer:
            known.partitions += answer.partitions
    return list(topics.values())


def committed(
    groups: GroupCoordinator, begin: Callable[[], Pending], response: R, fail: Callable[[KafkaError], None]
) -> R | Deferred:
    """Commit offsets; return the response, which is deferred until the offsets are durable.

    `begin` adds the commit to the journal's queue. `fail` puts an error into the response.
    """

    def result() -> R:
        try:
            groups.finish(pending)
        except KafkaError as error:
            fail(error)
        return response

    try:
        pending = begin()
    except KafkaError as error:
        fail(error)
        return response
    return Deferred(result)


def metadata_length(metadata: str | None) -> int:
    """Return the length of a commit's metadata as Kafka counts it, in UTF-16 units."""
    if not metadata or metadata.isascii():
        return len(metadata or "")
    return len(metadata.encode("utf-16-le")) // 2


def check_repetitions(names: Iterable[Hashable]) -> None:
    """Raise CloseConnection if a request repeats the same name more than MOST_TIMES times.

    The description of a group or a topic may fill megabytes, and its name is short. A request that repeats the name a
    thousand times asks for a response of gigabytes.
    """
    for name, times in Counter(names).items():
        if times > MOST_TIMES:
            raise CloseConnection(f"a request names {str(name)[:100]!r} {times} times")
