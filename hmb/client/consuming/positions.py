"""A consumer's position in each partition: two offsets, and the state of reading.

::

    consumed   the offset of the next record to return to the application; `position` returns it, and a commit saves it
    fetched    the offset of the next record to fetch from the leader

`fetched` is ahead of `consumed` by the records that were fetched and not yet returned. For example, a fetch returns the
records 10 to 19, and the application has received 10 to 12: `consumed` is 13, `fetched` is 20. A seek sets both
offsets, and discards the records between them.

A new position has no offset yet, only a *start* such as "latest". The reader finds the offset before the first fetch.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from hmb.client.offsets import Offset
from hmb.protocol.topics import TopicPartition

UNKNOWN = -1


@dataclass(slots=True, eq=False)
class Position:
    """A consumer's position in one partition."""

    partition: TopicPartition
    max_bytes: int  # bytes to fetch at once
    start: Offset | None = None  # the start of reading; None if the offset is known
    in_group: bool = False  # whether the group's committed offset has precedence over `start`
    topic_id: UUID | None = None  # the id of the topic to which the offsets belong; None if it is not known yet
    consumed: int = UNKNOWN
    fetched: int = UNKNOWN
    end: int | None = None  # the first offset that the consumer does not read; None if it reads without an end
    is_paused: bool = False
    is_in_flight: bool = False  # whether a fetch for this partition has not been answered yet
    is_removed: bool = False  # whether the consumer has given up the partition, or has a new position for it
    error: Exception | None = None  # the reason why the consumer cannot read further than the buffered records
    failing_since: float | None = None  # time.monotonic() of the first of consecutive failures
    # The time (time.monotonic) of the first response in which the broker did not know the topic, or None while it knows
    # it.
    missing_since: float | None = None
    retry_at: float = 0.0
    high_watermark: int = UNKNOWN
    last_stable: int = UNKNOWN

    @property
    def has_offset(self) -> bool:
        return self.start is None

    @property
    def at_end(self) -> bool:
        return self.end is not None and self.has_offset and self.consumed >= self.end

    @property
    def may_fetch(self) -> bool:
        """Whether records of this partition can be fetched now."""
        if self.is_paused or self.error is not None or self.start is not None:
            return False
        return self.end is None or self.fetched < self.end

    def move_to(self, offset: int) -> None:
        """Continue at `offset`, and forget errors of the old position."""
        self.consumed = self.fetched = offset
        self.start = self.error = self.failing_since = self.missing_since = self.topic_id = None
        self.in_group = False  # The committed offset is used once. If the offset is gone, `start` decides.
        self.retry_at = 0.0

    def lag(self, committed_only: bool) -> int | None:
        """Return the number of offsets from the position to the end of the log, or None before the first response."""
        end = self.last_stable if committed_only and self.last_stable != UNKNOWN else self.high_watermark
        return None if end == UNKNOWN or not self.has_offset else max(0, end - self.consumed)
