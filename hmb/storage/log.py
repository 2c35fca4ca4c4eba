"""Appends records to the end of a partition's log, and reads records from any offset.

A log is a sequence of records. Each record has an offset, its number in the sequence. The log assigns the offset when
it appends the record, and the offset never changes. The log stores the records in the batches of the producer, and the
batches in segments (segment.py). The last segment is the active segment. Appends go only to this segment:
    log start offset                                    log end offset = high watermark
    |                                                    |
    [ segment 0          ][ segment 8021      ][ 16042 ..>        the active segment

Example: the log ends at 16,100 and a producer sends 10 records. The records get the offsets 16,100 to 16,109, and the
log then ends at 16,110. If the active segment is full, the log first *rolls*: it closes the active segment and starts
segment 16100.

In Kafka, other brokers (followers) must copy a record before consumers can read it. HMB has no followers, so
consumers can read a record as soon as the log has appended it. After `flush` has returned, the record survives a
power cut (group_commit.py). By default, the response to a Produce request with acks=all waits for `flush`. The
functions in the folder cleanup/ delete and replace segments.

Source: Juchli and Wolf's thesis, chapters 6.2 and 9.5; Kafka's `UnifiedLog`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.enums import NO_PRODUCER_ID
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import NO_TIMESTAMP, AssignedMessages, EndTransactionMarker, RecordBatch, encode_marker
from hmb.storage.batches import time_search
from hmb.storage.batches.messages import as_record_batch, prepare_messages
from hmb.storage.batches.preparation import prepare
from hmb.storage.batches.validation import ProducedRecords, check_size
from hmb.storage.cleanup.replacement import repair
from hmb.storage.config import LogConfig
from hmb.storage.events import EventKind, EventLog
from hmb.storage.failure_isolation import NO_STOP
from hmb.storage.files.disk_reserve import DiskReserve
from hmb.storage.files.virtual import Parts, SyncFailed
from hmb.storage.group_commit import GroupCommit, Unsynced
from hmb.storage.log_producers import LogProducers
from hmb.storage.log_reading import FetchDataInfo, LogOffsetSnapshot, find_records
from hmb.storage.log_segments import LogSegments
from hmb.storage.producer_state import EXPIRATION_MS
from hmb.storage.recovery.loading import LoadedLog, LogCheckpoint, load
from hmb.storage.recovery.read_checks import RepeatedReads, check_begin
from hmb.storage.segment import DamagedSegment, Segment
from hmb.storage.state.leader_epochs import LeaderEpochs
from hmb.storage.state.manifest import Manifest
from hmb.storage.time_index import TimestampOffset
from hmb.storage.transaction_index import AbortedTransaction
from hmb.storage.watchers import Watchers
from hmb.units import now_ms

LOGGER = logging.getLogger(__name__)


class LogAppendInfo(NamedTuple):
    """The result of an append. `log_append_time` (ms) is -1 if the records keep the producer's timestamps."""

    base_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int


class Log:
    """The log of one partition, stored in one directory. Thread-safe.

    Invariants:

    - Each batch has greater offsets than the batches before it.
    - All records below the recovery point are on disk, and `recovery_point <= log_end_offset`.
    - All closed segments are on disk. After a crash, the first call of `flush_if_due` restores this invariant.
    - `log_start_offset <= last_stable_offset <= high_watermark = log_end_offset`. These offsets never decrease.
    """

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        *,
        recovery_point: int | None = 0,
        start_offset: int = 0,
        clean: bool = False,
        clock: Callable[[], int] = now_ms,
        stop: threading.Event = NO_STOP,
        reserve: DiskReserve | None = None,
        manifest: Manifest | None = None,
        events: EventLog | None = None,
    ) -> None:
        """Open the log of a partition. If the directory is empty, the log has no records.

        - `clean`: True if the log was closed properly. If it is False, this method checks the whole last segment.
        - `manifest`: the list of all segments. This method checks each segment whose files have changed. If no manifest
          exists and `clean` is False, it checks each segment that ends after `recovery_point` (None: all).
        - `recovery_point`: all records below this offset are on disk. If a crash has damaged the last segment at or
          after this offset, the log ends at the damage. This method restores or replaces other damaged batches.
        - `start_offset`: records below this offset were deleted, even if their segment still exists.
        - `reserve`: a file that reserves disk space. If the disk is full, the log deletes this file, so that the broker
          can still write. The log then refuses producers' batches.

        Raises OSError. Raises Stopped if another thread sets the event `stop` while this method runs.
        """
        self.directory, self.config = directory, config
        self.epochs = LeaderEpochs()
        self.clock, self._reserve = clock, reserve  # `clock` returns the time in ms
        self.events = EventLog(clock) if events is None else events  # recent events, for example a new segment
        # This lock guards the log's segments, its offsets and the state of its producers. An append holds the lock
        # while it assigns offsets and writes the records. A read holds the lock only while it copies the offsets and
        # the list of segments. A cleanup holds the lock only for short steps, such as a change of this list. A thread
        # that takes several locks takes `cleanup_lock` first, the lock of `group_commit` second, and this lock last.
        self.lock = threading.Lock()
        checkpoint = LogCheckpoint(recovery_point, clean, manifest.segments(directory.name) if manifest else None)
        loaded: LoadedLog = load(directory, config, checkpoint, now=clock(), stop=stop)
        self.log_segments = LogSegments(loaded.segments, manifest, directory.name)
        self.producer_state = loaded.producers
        self.producers = LogProducers(self.lock, loaded.producers)
        self.log_end_offset = loaded.end_offset  # changes only under `lock`
        self.log_start_offset = min(max(start_offset, self.log_segments.first.base_offset), self.log_end_offset)
        self.cleanup_lock = threading.Lock()  # held while segments are deleted, replaced or closed (cleanup/)
        self.watchers = Watchers()  # the fetches that wait for an append
        self._repeated_reads = RepeatedReads()  # a repeated read can be a sign of damage (recovery/read_checks.py)
        self.refusal: KafkaError | None = None  # the error of each append after the log was closed or deleted
        synced = loaded.end_offset if clean else min(recovery_point or 0, loaded.end_offset)
        self.group_commit = GroupCommit(directory, synced, clock(), self.log_segments.add_entry)
        self._files_created = 1  # number of files created in the directory; a sync of the directory saves their names

    @property
    def high_watermark(self) -> int:
        return self.log_end_offset

    @property
    def recovery_point(self) -> int:
        """The recovery point of the log: all records at lower offsets are on disk."""
        return self.group_commit.recovery_point

    @property
    def leader_epoch(self) -> int:
        return self.epochs.newest

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction; the log end offset if no transaction is open."""
        with self.lock:
            return self._last_stable_offset()

    def _last_stable_offset(self) -> int:
        unstable = self.producer_state.first_unstable_offset
        return self.log_end_offset if unstable is None else max(unstable, self.log_start_offset)

    @property
    def size(self) -> int:
        """The size (bytes) of the `.log` files of all segments."""
        return sum(segment.size for segment in self.log_segments)

    @property
    def segments(self) -> Sequence[Segment]:
        return tuple(self.log_segments)

    def segments_from(self, offset: int) -> Sequence[Segment]:
        """Return the segment that contains `offset`, and all later segments."""
        with self.lock:
            return self.log_segments.from_offset(offset)

    # -- append

    def append(self, records: ProducedRecords) -> LogAppendInfo:
        """Append a record batch of a producer, or messages in the older formats v0 and v1.

        Raises KafkaError with one of these codes: CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, INVALID_RECORD,
        INVALID_TIMESTAMP, UNSUPPORTED_COMPRESSION_TYPE, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH,
        INVALID_TXN_STATE, KAFKA_STORAGE_ERROR. After the broker has stopped, the code is NOT_LEADER_OR_FOLLOWER. If the
        log was deleted, it is UNKNOWN_TOPIC_OR_PARTITION. After an error, nothing was appended. There is one exception:
        if the setting `flush.messages` requires a sync and this sync fails, the records stay in the log.
        """
        if self._reserve is not None and self._reserve.is_used:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot append to {self.directory}: the disk is full")
        config, now = self.config, self.clock()
        append_time = now if config.uses_log_append_time else NO_TIMESTAMP
        if isinstance(records, RecordBatch):
            return self._flush_if_many(self.append_prepared(prepare(records, config, now), append_time, now))
        return self._flush_if_many(self._append_messages(records, config, append_time, now))  # messages v0 or v1

    def append_from_coordinator(self, batch: RecordBatch) -> LogAppendInfo:
        """Append a batch that the broker itself has created, for example a batch of committed offsets.

        The log does not check the records, and tries to write even if the disk is full. Raises the errors of `append`.
        """
        check_size(batch, self.config)
        return self._flush_if_many(self.append_prepared(batch, NO_TIMESTAMP, self.clock()))

    def _flush_if_many(self, appended: LogAppendInfo) -> LogAppendInfo:
        if appended.last_offset + 1 - self.recovery_point >= self.config.flush_messages:
            self.flush()
        return appended

    def append_prepared(self, batch: RecordBatch, append_time: int, now: int) -> LogAppendInfo:
        """Append a batch, unless the log already contains it. Return the offsets of the batch in the log.

        If the active segment is full, this method creates a new segment for the batch. Before this step, it syncs the
        log, unless all records of the full segment are on disk.
        """
        while True:
            with self.lock:
                if batch.producer_id != NO_PRODUCER_ID and (first := self.producer_state.check(batch)):
                    return LogAppendInfo(first.base_offset, first.last_offset, NO_TIMESTAMP, self.log_start_offset)
                base_offset = self.log_end_offset
                last_offset = base_offset + batch.last_offset_delta
                parts = batch.with_base_offset(base_offset, self.epochs.newest)
                max_timestamp = TimestampOffset(batch.max_timestamp, last_offset)
                if result := self._write(parts, last_offset, last_offset, max_timestamp, append_time):
                    if batch.producer_id != NO_PRODUCER_ID:
                        self.producer_state.add_batch(batch, base_offset, now)
                    return result
            self.flush()

    def append_marker(self, marker: EndTransactionMarker, producer_id: int, producer_epoch: int) -> LogAppendInfo:
        """Append the transaction coordinator's marker, which ends a producer's transaction in this partition.

        Raises TRANSACTION_COORDINATOR_FENCED or INVALID_PRODUCER_EPOCH for an old epoch, and the errors of `append`.
        """
        state, now = self.producer_state, self.clock()
        while True:
            with self.lock:
                offset = self.log_end_offset
                state.check_marker(producer_id, producer_epoch, marker)
                fields = {"base_offset": offset, "leader_epoch": self.leader_epoch}
                data = encode_marker(marker, now, producer_id, producer_epoch, **fields)
                aborted = state.aborted_by(marker, producer_id, offset)
                if result := self._write([data], offset, offset, TimestampOffset(now, offset), NO_TIMESTAMP, aborted):
                    state.add_marker(producer_id, producer_epoch, marker, now, now)
                    return result
            self.flush()

    def _append_messages(self, records: memoryview, config: LogConfig, append_time: int, now: int) -> LogAppendInfo:
        """Append messages v0 or v1. Convert them to a record batch if rewriting their offsets would take too long."""
        prepared = prepare_messages(records, config, now, self.log_end_offset)
        while isinstance(prepared, AssignedMessages):
            with self.lock:
                if is_moved := prepared.move_to(self.log_end_offset):
                    max_timestamp = TimestampOffset(prepared.max_timestamp, prepared.offset_of_max_timestamp)
                    offsets = prepared.last_offset_of_first_batch, prepared.last_offset
                    if result := self._write([prepared.data], *offsets, max_timestamp, append_time):
                        return result
            if is_moved:
                self.flush()
            else:
                prepared = as_record_batch(prepared, config, now)
        return self.append_prepared(prepared, append_time, now)

    def _write(
        self,
        parts: Parts,
        last_offset_of_first_batch: int,
        last_offset: int,
        max_timestamp: TimestampOffset,
        append_time: int,
        aborted: AbortedTransaction | None = None,
    ) -> LogAppendInfo | None:
        """Write batches to the active segment, and wake waiting fetches. The caller holds the log's lock.

        If the active segment is full, the log starts a new one. The full segment must be on disk first, because a power
        cut could otherwise leave a gap before the new records. If it is not on disk yet, the method writes nothing and
        returns None. The caller then releases the lock, syncs the log, and calls this method again.
        """
        if self.refusal is not None:
            raise self.refusal
        self.group_commit.raise_if_failed()
        try:
            active = self.log_segments.active
            if active.is_full(sum(map(len, parts)), last_offset, max_timestamp.timestamp):
                if self.recovery_point < self.log_end_offset:
                    return None
                active = self.roll()
            active.append(parts, last_offset_of_first_batch, max_timestamp, aborted)
            if aborted is not None:
                self._files_created += 1  # The append may have created the transaction index.
        except OSError as error:
            if self._reserve is not None:
                self._reserve.use(error)
            if isinstance(error, FileNotFoundError):  # Another process has removed the segment.
                self.group_commit.fail(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot append to {self.directory}: {error}") from error
        base_offset, self.log_end_offset = self.log_end_offset, last_offset + 1
        self.watchers.wake_all()
        self.group_commit.sync_ahead(active.size, self.flush)
        return LogAppendInfo(base_offset, last_offset, append_time, self.log_start_offset)

    def roll(self, *, sync: bool = False) -> Segment:
        """Close the active segment, and start a new one. After OSError, the old segment is still active.

        The caller must hold the log's lock, and have synced the log. With `sync`, the new file survives a power cut.
        """
        try:
            self.log_segments.active.check_file()
        except SyncFailed as error:
            self.group_commit.fail(error)
            raise
        self.producer_state.expire(self.clock() - EXPIRATION_MS)
        self.producer_state.save(self.directory, self.log_end_offset)
        segment = self.log_segments.roll(self.log_end_offset, self.config, sync=sync)
        self._files_created += 1
        text = f"{self.directory.name}: a new segment begins at offset {self.log_end_offset}"
        self.events.add(EventKind.ROLL, text, LOGGER)
        return segment

    # -- read

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool = True, committed: bool = False) -> FetchDataInfo:
        """Return bytes of one segment, beginning with the batch that contains `offset`.

        The result has at most `max_bytes` bytes. If the first batch is larger, the result is exactly this batch, or
        nothing if `at_least_one` is False. If `committed` is True, the result ends at the last stable offset.

        Raises OFFSET_OUT_OF_RANGE if the log does not have `offset`, and OSError if the disk has an error. Raises
        KAFKA_STORAGE_ERROR or DamagedSegment (CORRUPT_MESSAGE) if a damaged segment cannot be repaired.
        """
        try:
            return self._read(offset, max_bytes, at_least_one=at_least_one, committed=committed)
        except DamagedSegment as damage:
            repair(self, damage)
        return self._read(offset, max_bytes, at_least_one=at_least_one, committed=committed)

    def _read(self, offset: int, max_bytes: int, *, at_least_one: bool, committed: bool) -> FetchDataInfo:
        with self.lock:
            segments = self.log_segments.from_offset(offset)
            active_size = segments[-1].size
            offsets = LogOffsetSnapshot(self.log_start_offset, self.log_end_offset, self._last_stable_offset())
        first, end = offsets.log_start_offset, offsets.high_watermark
        if not first <= offset <= end:
            why = f"offset {offset} is not in {first} .. {end} of {self.directory.name}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, why)
        found = find_records(segments, active_size, offset, max_bytes, offsets, committed=committed)
        if found.segment is not None and found.records is not None and self._repeated_reads.is_due(offset):
            check_begin(found.segment, found.records)
        return found if at_least_one or found.size <= max_bytes else FetchDataInfo(offsets)

    def offset_for_timestamp(self, timestamp: int | None) -> TimestampOffset | None:
        """Return the first record with a timestamp of at least `timestamp` (ms), or None. Raises KafkaError.

        If `timestamp` is None, return the first record with the log's greatest timestamp (KIP-734).
        """
        return time_search.search(lambda: self.segments, timestamp, self.log_start_offset, partial(repair, self))

    # -- disk

    def flush(self) -> None:
        """Sync all records that the log contains at the time of the call. Raises KAFKA_STORAGE_ERROR."""
        self.group_commit.sync(self.log_end_offset, self._unsynced, self.clock)

    def _unsynced(self, recovery_point: int) -> Unsynced:
        with self.lock:
            self.log_segments.active.check_file()
            segments = self.log_segments.from_offset(recovery_point)
            return Unsynced(self.log_end_offset, segments, self.directory, self._files_created)

    def flush_if_due(self) -> None:
        """Sync the log if the time `flush.ms` has passed since the last sync, or if a closed segment is not synced."""
        is_old = self.clock() - self.group_commit.synced_at >= self.config.flush_ms
        if self.recovery_point < (self.log_end_offset if is_old else self.log_segments.active.base_offset):
            self.flush()

    def reconfigure(self, config: LogConfig) -> None:
        """Use the settings in `config` from now on, in all segments of the log."""
        with self.lock:
            self.config = config
            for segment in self.log_segments:
                segment.config = config

    def refuse(self, reason: KafkaError) -> None:
        """Refuse all appends from now on, for example because the log is deleted. Each append raises `reason`."""
        with self.lock:
            self.refusal = reason

    def update_parent_dir(self, directory: Path) -> None:
        """Set the new path of the log's directory, which was renamed. The caller holds the lock NAMES_LOCK."""
        self.directory = directory
        self.log_segments.update_parent_dir(directory)

    def close(self) -> None:
        """Close the log: refuse appends, sync the log, save a snapshot of the producers, and close the files.

        The method refuses appends at once. If a cleanup is deleting or replacing segments, it waits until the cleanup
        ends, and only then syncs the log. After `close`, the log never changes a file again. If `close` raises
        KAFKA_STORAGE_ERROR or OSError, the broker checks the log when it starts again.
        """
        self.refuse(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker stops"))
        with self.cleanup_lock:
            self.flush()
            with self.lock:
                self.log_segments.active.check_file()
                self.producer_state.save(self.directory, self.log_end_offset)
                for segment in self.log_segments:
                    segment.close()
            self.log_segments.delete_removed()
