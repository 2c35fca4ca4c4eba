"""A cache for the state of a broker: if a log has not changed, the broker need not read it again for the next state.

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
    """One entry of the cache: what the broker has already read from one log.

    info        the `PartitionInfo` of the log: its offsets, segments and producers. It is None if the broker has not
                read the log yet
    timestamps  a dict from committed offsets of groups to timestamps (ms). The timestamp is the largest one in the
                batch that contains the offset, or in the next batch if no batch contains it. It is None if this batch
                cannot be read
    """

    __slots__ = ("_expires", "_offsets", "_timestamps_expire", "info", "timestamps")

    def __init__(self, log: Log, last: CachedLog | None) -> None:
        """Create an entry whose `info` is None, because the broker must read the log again.

        `last` is the previous entry of the log, or None. The new entry takes the timestamps from `last` unless they are
        too old, because new records do not change the timestamps of older batches.
        """
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
