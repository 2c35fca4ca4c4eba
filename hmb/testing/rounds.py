"""Rounds of retention and compaction that a test starts itself.

A broker runs retention every 5 minutes, and looks for a log to compact every 15 seconds. A test does not wait for the
next round. It starts a round, and the result states what the round has done.

A round that a test starts compacts more than a periodic round. Kafka compacts only closed segments, and only logs in
which half of the bytes are new. Under these rules the few records of a test would stay. Therefore `compact` closes the
active segments first, and accepts each log. For example, a partition contains three values of the same key. `compact`
removes the first two values.

A limit: the last record of a partition stays, because consumers wait for the last offset. If the last record is a
tombstone or the end of a transaction, its batch is not compacted.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from hmb.broker.broker import BrokerServer
from hmb.protocol.topics import TopicPartition
from hmb.records import Batch, iter_batches
from hmb.storage.cleanup import deletion
from hmb.storage.compaction.cleaner import Cleanable
from hmb.storage.log import Log

READ_BYTES = 1 << 20


def run_retention(server: BrokerServer) -> dict[TopicPartition, int]:
    """Delete the segments that have expired. Return the number of deleted offsets of each changed partition."""
    with server.housekeeping_paused():
        return _differences(server, server.logs.expire, lambda log: -log.log_start_offset)


def compact(server: BrokerServer) -> dict[TopicPartition, int]:
    """Compact all logs of compacted topics. Return the number of removed bytes of each changed partition."""
    with server.housekeeping_paused():
        return _differences(server, lambda: server.cleaner.run(_whole_log), lambda log: log.size)


def _differences(
    server: BrokerServer, work: Callable[[], None], measure: Callable[[Log], int]
) -> dict[TopicPartition, int]:
    """Return by how much `work` reduces the measure of each log. Logs without a difference are left out."""
    before = {name: (log, measure(log)) for name, log in server.logs.items()}
    work()
    differences = {name: size - measure(log) for name, (log, size) in before.items()}
    return {name: difference for name, difference in differences.items() if difference}


def _whole_log(log: Log, first_dirty: int, now: int) -> Cleanable | None:
    """Return the closed segments of a log, after a roll, except those that are younger than min.compaction.lag.ms."""
    if log.segments[-1].size:
        with log.cleanup_lock:
            deletion.roll(log)
    *closed, active = log.segments
    youngest = now - log.config.min_compaction_lag_ms
    old = list(takewhile(lambda each: each.max_timestamp <= youngest or not log.config.min_compaction_lag_ms, closed))
    following = [each.base_offset for each in [*closed, active]][len(old)]
    end = min(following, log.last_stable_offset, _end(log))
    return Cleanable(old, max(first_dirty, log.log_start_offset), end) if old else None


def _end(log: Log) -> int:
    """Return the offset up to which a log can be compacted.

    This is the log end offset if compaction keeps the last record, which has a key and a value. Otherwise it is the
    base offset of the last batch.
    """
    full = [each for each in log.segments if each.size]
    offset = max(full[-1].base_offset, log.log_start_offset) if full else log.log_end_offset
    last: Batch | None = None
    while (region := log.read(offset, READ_BYTES).records) is not None:
        for last in iter_batches(region.read()):
            offset = last.last_offset + 1
    if last is None:
        return log.log_end_offset
    *_, record = [None] if last.is_control else last.records()
    return last.base_offset if record is None or None in (record.key, record.value) else log.log_end_offset
