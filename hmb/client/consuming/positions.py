"""How far each partition is read: two places in its log, and what is known of its ends.

    consumed   the next offset to hand out: what `position` tells and a commit saves
    fetched    the next offset to ask the leader for

The second runs ahead of the first, by the records that have come and were not handed out yet. To seek is to set both,
and to throw away what came in between. A position that is not *settled* has no offset yet, only a wish ("latest"): it
is settled before the next fetch.
"""

from dataclasses import dataclass
from uuid import UUID

from hmb.client.offsets import Offset
from hmb.protocol.topics import TopicPartition

UNKNOWN = -1


@dataclass(slots=True, eq=False)
class Position:
    """How far a partition is read."""

    partition: TopicPartition
    max_bytes: int  # to fetch at once
    wish: Offset | None = None  # where to begin; None: it is settled
    in_group: bool = False  # begin where the group has committed, if it has
    topic_id: UUID | None = None  # of the topic that the offsets belong to; None: of any
    consumed: int = UNKNOWN
    fetched: int = UNKNOWN
    end: int | None = None  # stop before this offset; None: never
    is_paused: bool = False
    is_asked: bool = False  # a leader owes an answer about it
    is_dropped: bool = False  # another has taken its place, or the partition was given up
    error: Exception | None = None  # why nothing can be read after what has come
    failing_since: float | None = None  # time.monotonic() of the first failure in a row
    gone_since: float | None = None  # of the first in a row by which the topic is not there
    retry_at: float = 0.0
    high_watermark: int = UNKNOWN
    last_stable: int = UNKNOWN

    @property
    def has_offset(self) -> bool:
        return self.wish is None

    @property
    def at_end(self) -> bool:
        return self.end is not None and self.has_offset and self.consumed >= self.end

    @property
    def may_fetch(self) -> bool:
        """Whether there is something to ask the leader for."""
        if self.is_paused or self.error is not None or self.wish is not None:
            return False
        return self.end is None or self.fetched < self.end

    def move_to(self, offset: int) -> None:
        """Go on from there; what was wrong elsewhere is forgotten."""
        self.consumed = self.fetched = offset
        self.wish = self.error = self.failing_since = self.gone_since = self.topic_id = None
        self.in_group = False  # what it has committed is behind us, or not there any more
        self.retry_at = 0.0

    def lag(self, committed_only: bool) -> int | None:
        """How many offsets are left to hand out, as of the last answer; None before the first."""
        end = self.last_stable if committed_only and self.last_stable != UNKNOWN else self.high_watermark
        return None if end == UNKNOWN or not self.has_offset else max(0, end - self.consumed)
