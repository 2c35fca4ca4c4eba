"""Stores a consumer's position in a partition, and the partition's last error.

A consumer's position in a partition contains two offsets:
    consumed      the offset of the next record that `poll` returns; a commit saves this offset
    fetch_offset  the offset of the next record that the consumer fetches from the leader

The consumer's buffer contains the records at or above `consumed` and below `fetch_offset`. For example, a Fetch
response contained the records 10 to 19, and `poll` has returned the records 10 to 12. `consumed` is now 13, and
`fetch_offset` is 20. `seek` sets both offsets to the same value, and the consumer removes the partition's records from
the buffer.

A new position contains no offset yet. It only contains a *start*, for example "latest". Before the first fetch of the
partition, the reader asks a broker for the offset that "latest" means, and stores this offset in the position.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from hmb.client.offsets import Offset
from hmb.protocol.enums import NO_OFFSET
from hmb.protocol.topics import TopicPartition


@dataclass(slots=True, eq=False)
class Position:
    """A consumer's position in one partition.

    - `consumed` is never greater than `fetch_offset`. If they are equal, the buffer contains no record of the
      partition.
    - `start` says where the consumer begins to read, for example at "latest". Before the consumer can fetch, it
      must find the offset that `start` means. Then `start` becomes None.
    """

    partition: TopicPartition
    max_bytes: int  # the largest number of bytes to request in one fetch
    start: Offset | None = None  # where reading begins, for example "latest"; None once the offset is known
    in_group: bool = False  # whether a committed offset of the group takes precedence over `start`
    topic_id: UUID | None = None  # the id of the topic to which the offsets belong; None if it is not known yet
    consumed: int = NO_OFFSET
    fetch_offset: int = NO_OFFSET
    end: int | None = None  # the offset at which reading ends; None if the consumer reads forever
    is_paused: bool = False
    is_in_flight: bool = False  # whether a Fetch request for this partition is in flight
    is_removed: bool = False  # whether the consumer no longer uses this position
    error: Exception | None = None  # `poll` raises this error when the buffer is empty
    failing_since: float | None = None  # the time of the first failure after the last success, or None
    # The time (time.monotonic()) when an unbroken series of UNKNOWN_TOPIC_OR_PARTITION errors began. A success or
    # another error sets this field to None.
    missing_since: float | None = None
    retry_at: float = 0.0
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET

    @property
    def has_offset(self) -> bool:
        return self.start is None

    @property
    def at_end(self) -> bool:
        return self.end is not None and self.has_offset and self.consumed >= self.end

    @property
    def may_fetch(self) -> bool:
        """True if the consumer may fetch records of this partition now."""
        if self.is_paused or self.error is not None or self.start is not None:
            return False
        return self.end is None or self.fetch_offset < self.end

    def move_to(self, offset: int) -> None:
        """Set the position to `offset`, and forget the errors of the old position."""
        self.consumed = self.fetch_offset = offset
        self.start = self.error = self.failing_since = self.missing_since = self.topic_id = None
        self.in_group = False  # A start that is set later takes precedence over the group's committed offset.
        self.retry_at = 0.0

    def lag(self, committed_only: bool) -> int | None:
        """Return the number of offsets from the position to the end of the log.

        The result is None before the first Fetch response, because the end of the log is then unknown. If
        `committed_only` is true, the end is the last stable offset.
        """
        has_stable_end = committed_only and self.last_stable_offset != NO_OFFSET
        end = self.last_stable_offset if has_stable_end else self.high_watermark
        return None if end == NO_OFFSET or not self.has_offset else max(0, end - self.consumed)
