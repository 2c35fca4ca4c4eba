"""What several handlers' answers have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar
from uuid import UUID


class TopicAnswer(Protocol):
    """A topic in the answer to OffsetCommit or OffsetDelete."""

    name: str
    partitions: list[Any]


T = TypeVar("T", bound=TopicAnswer)


def merged(refused: Sequence[T], answered: Sequence[T]) -> list[T]:
    """One entry a topic, as Kafka makes it: first what was refused before the group was asked.

    Where nothing was refused, the answers are as the request was, which may name a topic twice.
    """
    if not refused:
        return list(answered)
    topics: dict[tuple[str, UUID | None], T] = {}
    for answer in (*refused, *answered):
        known = topics.setdefault((answer.name, getattr(answer, "topic_id", None)), answer)
        if known is not answer:
            known.partitions += answer.partitions
    return list(topics.values())
