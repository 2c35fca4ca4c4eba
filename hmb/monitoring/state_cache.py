"""A cache of the facts that the last collections of the state found in each log, for logs that have not changed.

A page needs the broker's state five times a second. A state of 1,000 partitions costs about 55 ms of processor time
while clients send records, but only some partitions change between two states. With this cache, a partition without
changes costs about 1 us instead of 25 us.

To find out whether a log has changed, the cache compares the log's offsets with its offsets at the last collection.
Some changes do not change these offsets: compaction, for example, only removes older records. So an entry of the cache
is valid for only FRESH seconds. After this time, the cache reads the log again.

If a group lags, its state contains the age of the first batch that it has not read. For this age, the broker reads the
timestamp in the batch's header from the file. The cache stores these timestamps. New records change no earlier batch,
so the timestamps stay valid when the log's end moves. But compaction or retention can delete the batch, so the cache
keeps a timestamp for only FRESH_TIMESTAMPS seconds.
"""

from __future__ import annotations

import time
from weakref import WeakKeyDictionary

from hmb.monitoring.state import PartitionInfo
from hmb.storage.log import Log

FRESH = 2.0  # seconds after which the partition in an entry is no longer used
FRESH_TIMESTAMPS = 20.0  # seconds after which the timestamps in an entry are no longer used


class CachedLog:
    """One entry of the cache: the facts that the broker has already collected about one log.

    info        the partition of the log, or None before the broker has collected its state
    timestamps  committed offset of a group -> the largest timestamp (ms) in the batch that contains this offset, or in
                the next batch if no batch contains it. None: this batch cannot be read
    """

    __slots__ = ("_expires", "_offsets", "_timestamps_expire", "info", "timestamps")

    def __init__(self, log: Log, last: CachedLog | None) -> None:
        """Create an entry without a partition. Copy only the timestamps from `last`, the log's previous entry."""
        now = time.monotonic()
        self.info: PartitionInfo | None = None
        self.timestamps: dict[int, int | None] = {}
        self._timestamps_expire = now + FRESH_TIMESTAMPS
        self._offsets = _offsets(log)
        self._expires = now + FRESH
        if last is not None and now < last._timestamps_expire:
            self.timestamps, self._timestamps_expire = last.timestamps, last._timestamps_expire

    def is_valid(self, log: Log) -> bool:
        return self._offsets == _offsets(log) and time.monotonic() < self._expires


class StateCache:
    """The cached facts of all logs. Thread-safe. The cache does not keep a deleted log in memory."""

    def __init__(self) -> None:
        self._logs: WeakKeyDictionary[Log, CachedLog] = WeakKeyDictionary()

    def of(self, log: Log) -> CachedLog:
        """Return the entry of a log. Make a new entry if the log has changed, or after FRESH seconds."""
        cached = self._logs.get(log)
        if cached is None or not cached.is_valid(log):
            cached = self._logs[log] = CachedLog(log, cached)
        return cached


def _offsets(log: Log) -> tuple[int, int, int, int]:
    return log.log_start_offset, log.log_end_offset, log.recovery_point, log.leader_epoch
