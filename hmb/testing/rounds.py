"""Retention and compaction on demand: a test calls a function, instead of waiting for the broker.

A broker runs retention every 5 minutes, and looks every 15 seconds for a log to compact. A test cannot wait so long.
The test calls `run_retention` or `compact`, which return what they have deleted.

`compact` removes more records than the broker's periodic compaction. For example, a partition contains three values of
the same key, in the active segment. `compact` removes the first two values. The periodic compaction keeps all three.

The periodic compaction never compacts the active segment. By default, it also waits until at least half of the log's
bytes have been written since the last compaction. The few records of a test usually stay in the
active segment. `compact` therefore closes the active segment of each log, and does not wait for more bytes.

`compact` always keeps the last record of each partition. A consumer in a test often reads until it has received
the last record of the log. Without this record, it would wait forever. If the last record is a tombstone, a
transaction marker or a record without a key, compaction could remove it. In this case, `compact` keeps the
whole last batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import takewhile

from hmb.broker.lifecycle import BrokerServer
from hmb.protocol.topics import TopicPartition
from hmb.storage.cleanup import deletion
from hmb.storage.compaction.cleaner import LogToClean
from hmb.storage.log import Log
from hmb.testing.stored_records import batches_from


def run_retention(server: BrokerServer) -> dict[TopicPartition, int]:
    """Delete expired segments. Return how far the log start offset of each changed partition has moved.

    For example, the log start offset of a partition moves from 100 to 250. The result for this partition is 150.
    """
    with server.housekeeping_paused():
        return _differences(server, server.logs.expire, lambda log: -log.log_start_offset)


def compact(server: BrokerServer) -> dict[TopicPartition, int]:
    """Compact all topics that use compaction. Return the number of removed bytes for each changed partition."""
    with server.housekeeping_paused():
        return _differences(server, lambda: server.cleaner.run(_whole_log), lambda log: log.size)


def _differences(
    server: BrokerServer, work: Callable[[], None], measure: Callable[[Log], int]
) -> dict[TopicPartition, int]:
    """Measure each log before and after `work`. Return the decrease for each log whose value changes.

    For example, `work` compacts the logs, and `measure` returns a log's size. If a log shrinks from 900 to 600
    bytes, the result for this log is 300.
    """
    before = {name: (log, measure(log)) for name, log in server.logs.items()}
    work()
    differences = {name: size - measure(log) for name, (log, size) in before.items()}
    return {name: difference for name, difference in differences.items() if difference}


def _whole_log(log: Log, first_dirty: int, now: int) -> LogToClean | None:
    """Close the active segment, and return the segments that can be compacted (None if no segment can be).

    The result ends before the first segment that contains a record younger than `min.compaction.lag.ms`.
    """
    if log.segments[-1].size:
        with log.cleanup_lock:
            deletion.roll(log)
    *closed, active = log.segments
    youngest = now - log.config.min_compaction_lag_ms
    old = list(takewhile(lambda each: each.max_timestamp <= youngest or not log.config.min_compaction_lag_ms, closed))
    following = [each.base_offset for each in [*closed, active]][len(old)]
    end = min(following, log.last_stable_offset, _end(log))
    return LogToClean(old, max(first_dirty, log.log_start_offset), end) if old else None


def _end(log: Log) -> int:
    """Return the end offset for compaction. Compaction can remove only records below this offset.

    A test may wait for the log's last record, so compaction must not remove it:

    - If the last record has a key and a value, compaction always keeps it, because no newer record has the same
      key. Return the log end offset.
    - If the last record is a tombstone, a control record or a record without a key, compaction could remove it.
      Return the base offset of the last batch, so that the whole batch stays.
    """
    full = [each for each in log.segments if each.size]
    offset = max(full[-1].base_offset, log.log_start_offset) if full else log.log_end_offset
    newest = deque(batches_from(log, offset), maxlen=1)
    if not newest:
        return log.log_end_offset
    last = newest[0]
    *_, record = [None] if last.is_control else last.records()
    return last.base_offset if record is None or None in (record.key, record.value) else log.log_end_offset
