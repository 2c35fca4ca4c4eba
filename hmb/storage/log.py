"""The log of one partition: append at its end, read from any offset.

A log is a sequence of records, each with an offset, the number of its place.  Offsets are given here, at the append,
and never change.  The records are kept in batches as the producer made them, in segments (segment.py); the last segment
is the active one::

    log start offset                                    log end offset = high watermark
    |                                                    |
    [ segment 0          ][ segment 8021      ][ 16042 ..>        the active segment

One broker has no followers to wait for, so a record can be read as soon as it is appended.  When it is on disk is
another matter: `flush` answers that (group_commit.py).

Invariants: offsets of batches grow; `recovery_point <= log_end_offset`, and what lies before the recovery point has
been synced.

Source: thesis ch. 6.2 and 9.5; Kafka's `UnifiedLog`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.enums import NO_PRODUCER_ID
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import NO_TIMESTAMP, AssignedMessages, EndTransactionMarker, RecordBatch, encode_marker
from hmb.storage import log_reading
from hmb.storage.batches import preparation
from hmb.storage.batches.validation import ProducedRecords
from hmb.storage.compaction import swap
from hmb.storage.config import LogConfig
from hmb.storage.files.disk_reserve import DiskReserve
from hmb.storage.files.virtual import Parts, SyncFailed
from hmb.storage.group_commit import GroupCommit, Unsynced
from hmb.storage.log_reading import LogSlice
from hmb.storage.log_segments import LogSegments
from hmb.storage.producer_state import EXPIRATION_MS, ActiveProducer, LastBatch, delete_old_snapshots, snapshot_path
from hmb.storage.read_checks import RepeatedReads, check_begin
from hmb.storage.recovery.checking import NO_STOP, DamagedSegment
from hmb.storage.recovery.loading import Known, LoadedLog, load
from hmb.storage.recovery.repair import repaired_copy
from hmb.storage.retention import count_expired
from hmb.storage.segment import Segment
from hmb.storage.state.leader_epochs import LeaderEpochs
from hmb.storage.state.manifest import Manifest, SegmentEntry
from hmb.storage.time_index import TimestampOffset
from hmb.storage.transaction_index import AbortedTransaction
from hmb.storage.watchers import Watchers

LOGGER = logging.getLogger(__name__)
SYNC_AHEAD = 16 << 20  # bytes
REPAIR_PATIENCE = 10.0  # seconds that a repair waits for a compaction


class AppendResult(NamedTuple):
    """Offsets of what was appended, both included; log_append_time in ms, -1 where producers set the timestamps."""

    base_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Log:
    """One partition's log in one directory."""

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
    ) -> None:
        """Open the log, or make it.

        `clean`: it was closed properly; else all from `recovery_point` on is checked (None: all). Records before
        `start_offset` were deleted, even if their segment is still there. Producers have to wait while the disk is full
        (`reserve`). Without a manifest every file is accepted. Raises OSError, and Stopped if `stop` is set.
        """
        self.directory = directory
        self.config = config
        self.epochs = LeaderEpochs()
        self._clock = clock
        self._reserve = reserve
        # Guards segments, offsets and producers: appends write under it, reads only look up the end under it.
        # Taken after cleanup_lock and the group commit's lock.
        self._lock = threading.Lock()
        known = Known(recovery_point, clean, manifest.segments(directory.name) if manifest else None)
        loaded: LoadedLog = load(directory, config, known, now=clock(), stop=stop)
        self._segments = LogSegments(loaded.segments, manifest, directory.name)
        self._producers = loaded.producers
        self._end_offset = loaded.end_offset
        self._start_offset = min(max(start_offset, self._segments.first.base_offset), self._end_offset)
        # Held while segments are deleted or replaced; taken before _lock.
        self.cleanup_lock = threading.Lock()
        self.watchers = Watchers()  # of appends
        self._repeated_reads = RepeatedReads()
        self._refusal: KafkaError | None = None  # why nothing more is taken
        synced = loaded.end_offset if clean else min(recovery_point or 0, loaded.end_offset)
        self._commit = GroupCommit(directory, synced, clock(), self._segments.note)
        self._sync_begun_at = self._segments.active.size  # size (bytes) of the active segment at the last `_sync_ahead`
        self._names_made = 1  # in the directory; a sync is for those, too, that were made since the last one

    # -- what it holds

    @property
    def log_start_offset(self) -> int:
        return self._start_offset

    @property
    def log_end_offset(self) -> int:
        return self._end_offset

    @property
    def high_watermark(self) -> int:
        return self._end_offset

    @property
    def recovery_point(self) -> int:
        """What lies before it has been synced."""
        return self._commit.recovery_point

    @property
    def leader_epoch(self) -> int:
        return self.epochs.newest

    @property
    def last_stable_offset(self) -> int:
        """What lies before it is decided: no transaction that has begun there is still open."""
        with self._lock:
            return self._last_stable_offset()

    def _last_stable_offset(self) -> int:
        unstable = self._producers.first_unstable_offset
        return self._end_offset if unstable is None else max(unstable, self._start_offset)

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(segment.size for segment in self._segments)

    @property
    def highest_producer_id(self) -> int:
        """Of the idempotent producers that are remembered; -1 where there are none."""
        with self._lock:
            return self._producers.highest_id

    @property
    def segments(self) -> Sequence[Segment]:
        return tuple(self._segments)

    # -- append

    def append(self, records: ProducedRecords, *, own: bool = False) -> AppendResult:
        """Append what a producer sent, record batches v2, or messages v0 or v1; or a batch of the broker's own.

        Raises KafkaError: CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, INVALID_RECORD, INVALID_TIMESTAMP,
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, KAFKA_STORAGE_ERROR.  Then nothing was appended,
        but for a KAFKA_STORAGE_ERROR of the sync that `flush.messages` asks for.
        """
        if not own and self._reserve is not None and self._reserve.is_used:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot append to {self.directory}: the disk is full")
        config, now = self.config, self._clock()
        prepare = preparation.prepare_own if own else preparation.prepare
        prepared = prepare(records, config, now, self._end_offset)
        append_time = NO_TIMESTAMP if config.message_timestamp_type == "CreateTime" else now
        if isinstance(prepared, RecordBatch):
            result = self._append_batch(prepared, append_time, now)
        else:
            moved = self._append_messages(prepared, append_time)
            result = moved or self._append_batch(preparation.as_batch(prepared, config, now), append_time, now)
        if result.last_offset + 1 - self.recovery_point >= config.flush_messages:
            self.flush()
        return result

    def _append_batch(self, batch: RecordBatch, append_time: int, now: int) -> AppendResult:
        while True:
            with self._lock:
                if batch.producer_id != NO_PRODUCER_ID and (first := self._producers.check(batch)):
                    return AppendResult(first.base_offset, first.last_offset, NO_TIMESTAMP, self.log_start_offset)
                base_offset = self._end_offset
                last_offset = base_offset + batch.last_offset_delta
                parts = batch.stamped(base_offset, self.leader_epoch)
                if self._write(parts, last_offset, last_offset, TimestampOffset(batch.max_timestamp, last_offset)):
                    if batch.producer_id != NO_PRODUCER_ID:
                        self._producers.note(batch, base_offset, now)
                    return AppendResult(base_offset, last_offset, append_time, self.log_start_offset)
            self.flush()

    def _append_messages(self, messages: AssignedMessages, append_time: int) -> AppendResult | None:
        """Return None if another append took these offsets first and the messages cannot be given new ones."""
        while True:
            with self._lock:
                if not messages.move_to(self._end_offset):
                    return None
                first, last = messages.first_offset, messages.last_offset
                newest = TimestampOffset(messages.max_timestamp, messages.offset_of_max_timestamp)
                if self._write([messages.data], messages.first_batch_end, last, newest):
                    return AppendResult(first, last, append_time, self.log_start_offset)
            self.flush()

    def append_marker(self, marker: EndTransactionMarker, producer_id: int, producer_epoch: int) -> AppendResult:
        """End a producer's transaction in this partition: for the transaction coordinator.

        Raises KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR.
        """
        now = self._clock()
        while True:
            with self._lock:
                offset = self._end_offset
                self._producers.check_marker(producer_id, producer_epoch, marker)
                places = {"base_offset": offset, "leader_epoch": self.leader_epoch}
                data = encode_marker(marker, now, producer_id, producer_epoch, **places)
                aborted = self._producers.aborted_by(marker, producer_id, offset)
                if self._write([data], offset, offset, TimestampOffset(now, offset), aborted):
                    self._producers.note_marker(producer_id, producer_epoch, marker, now, now)
                    return AppendResult(offset, offset, NO_TIMESTAMP, self.log_start_offset)
            self.flush()

    def _write(
        self,
        parts: Parts,
        first_batch_end: int,
        last_offset: int,
        newest: TimestampOffset,
        aborted: AbortedTransaction | None = None,
    ) -> bool:
        """Write batches to the active segment, and wake the fetches that wait for them. Called under the lock.

        Return False, and write nothing, if the log has to roll and is not synced: the caller then syncs it without the
        lock and tries again. So each segment but the last one is on disk, and a hole in it is never a power cut's.
        """
        if self._refusal is not None:
            raise self._refusal
        self._commit.raise_if_failed()
        try:
            active = self._segments.active
            if active.is_full(sum(map(len, parts)), last_offset, newest.timestamp):
                if self.recovery_point < self._end_offset:
                    return False
                active = self._roll()
            active.append(parts, first_batch_end, newest, aborted)
            if aborted is not None:
                self._names_made += 1  # the transaction index may be new
        except OSError as error:
            if self._reserve is not None:
                self._reserve.use(error)
            if isinstance(error, FileNotFoundError):  # another process has removed the segment
                self._commit.fail(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot append to {self.directory}: {error}") from error
        self._end_offset = last_offset + 1
        self.watchers.wake_all()
        if active.size - self._sync_begun_at >= SYNC_AHEAD:
            self._sync_begun_at = active.size
            threading.Thread(target=self._sync_ahead, name=f"sync-{self.directory.name}", daemon=True).start()
        return True

    def _sync_ahead(self) -> None:
        """Sync in a thread of its own. The sync before the next roll, for which producers wait, is then short."""
        with contextlib.suppress(KafkaError):  # the group commit remembers a failed sync, and the next append raises it
            self.flush()

    def _write_snapshot(self) -> None:
        self._producers.write_snapshot(snapshot_path(self.directory, self._end_offset))
        delete_old_snapshots(self.directory)

    def _roll(self, *, sync: bool = False) -> Segment:
        """Close the active segment and start the next one, at the log's end.

        The file is created here, because its name is the next offset: compaction leaves a gap before it, and the next
        start believes a batch after a gap only if something follows. Raises OSError, and then the log has not rolled.
        """
        try:
            self._segments.active.check_file()
        except SyncFailed as error:
            self._commit.fail(error)
            raise
        self._segments.active.close()  # it is complete and on disk: no descriptor is needed until a client reads it
        # A power cut takes this entry back only together with the next segment's, and then this segment is checked.
        self._segments.note(self._segments.active, self._end_offset, sync=False)
        self._producers.expire(self._clock() - EXPIRATION_MS)
        self._write_snapshot()
        segment = Segment(self.directory, self._end_offset, self.config)
        segment.make(sync=sync)
        self._segments.append(segment)
        self._sync_begun_at = 0
        self._names_made += 1
        LOGGER.info("rolled %s at offset %d", self.directory.name, self._end_offset)
        return segment

    # -- read

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool = True, committed: bool = False) -> LogSlice:
        """The bytes from `offset` on, at most `max_bytes`, from one segment.

        `at_least_one`: a larger batch all the same; `committed`: only up to the last stable offset.  Raises
        OFFSET_OUT_OF_RANGE outside of log start offset .. log end offset.
        """
        try:
            return self._read(offset, max_bytes, at_least_one=at_least_one, committed=committed)
        except DamagedSegment as damage:
            self.repair(damage)
        return self._read(offset, max_bytes, at_least_one=at_least_one, committed=committed)

    def _read(self, offset: int, max_bytes: int, *, at_least_one: bool, committed: bool) -> LogSlice:
        with self._lock:
            segments = self._segments.from_offset(offset)
            active_size = segments[-1].size
            nothing = LogSlice(self._start_offset, self._end_offset, self._last_stable_offset())
        first, end = nothing[:2]
        if not first <= offset <= end:
            why = f"offset {offset} is not in {first} .. {end} of {self.directory.name}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, why)
        found = log_reading.read(segments, active_size, offset, max_bytes, nothing, committed=committed)
        if found.segment is not None and found.records is not None and self._repeated_reads.is_due(offset):
            check_begin(found.segment, found.records)
        return found if at_least_one or found.size <= max_bytes else nothing

    def check(self, offset: int, why: str) -> None:
        """Check the segment that holds `offset`, and repair it, for a reader that opens batches. Raises as `repair`."""
        self.repair(DamagedSegment(self._segments.from_offset(offset)[0], why))

    def repair(self, damage: DamagedSegment) -> None:
        """Repair the segment in which a read met damage. Raises KAFKA_STORAGE_ERROR if that fails or has to wait."""
        LOGGER.error("%s: the segment is checked and repaired", damage.message)
        if not self.cleanup_lock.acquire(timeout=REPAIR_PATIENCE):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.directory}: a compaction is in progress")
        try:
            if damage.segment is self._segments.active and damage.segment.size:
                with contextlib.suppress(KafkaError):  # then the log takes nothing more, and stays as long as it is
                    self._roll_for_deletion()
            is_complete = damage.segment is not self._segments.active or self._commit.has_failed
            if damage.segment in self.segments and is_complete:
                next_offset = self._segments.next_offset(damage.segment, self._end_offset)
                new = repaired_copy(damage.segment, next_offset, self.segments)
                if new is not None:
                    self.replace([damage.segment], new)
        except OSError as error:
            why = f"{damage.segment.path} cannot be repaired: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why) from error
        finally:
            self.cleanup_lock.release()

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """Return the first record that is not older than `timestamp` (ms). Raises KafkaError."""
        return self._search(lambda: log_reading.first_at_or_after(self.segments, timestamp, self._start_offset))

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        """Return the first record with the greatest timestamp; None if no record has one (KIP-734)."""
        return self._search(lambda: log_reading.newest(self.segments, self._start_offset))

    def _search(self, search: Callable[[], TimestampOffset | None]) -> TimestampOffset | None:
        """Return the result of a search by time. Repair each damaged segment that it meets, as `read` does."""
        for _ in self.segments:
            try:
                return search()
            except DamagedSegment as damage:
                self.repair(damage)
        return search()

    # -- delete

    def new_start(self, before_offset: int) -> int:
        """Return the offset at which the log would start without records before `before_offset`; -1: without all.

        Raises OFFSET_OUT_OF_RANGE, and POLICY_VIOLATION if only compaction may delete.
        """
        if self.config.compacts and not self.config.deletes:
            why = f"{self.directory.name} is compacted: cleanup.policy={self.config.cleanup_policy}"
            raise KafkaError(ErrorCode.POLICY_VIOLATION, why)
        wanted = self._end_offset if before_offset == -1 else before_offset
        if not 0 <= wanted <= self._end_offset:
            why = f"offset {before_offset} is not in 0 .. {self._end_offset}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, why)
        return max(self._start_offset, wanted)

    def delete_records(self, before_offset: int) -> int:
        """Move the log's start, and return it. `expire` deletes the segments before it. Raises as `new_start` does."""
        with self._lock:
            if self._refusal is not None:
                raise self._refusal
            self._start_offset = self.new_start(before_offset)
            return self._start_offset

    def expire(self, *, before_offset: int = 0, at_once: bool = False) -> int:
        """Delete the segments that need not be kept (retention.py) or end before an offset; return how many.

        Their files are removed after `file.delete.delay.ms`, because a fetch may be reading them, or `at_once`. Raises
        OSError, KAFKA_STORAGE_ERROR.
        """
        if not self.cleanup_lock.acquire(blocking=False):
            return 0  # a compaction is in progress: the next call expires the segments
        try:
            return self._expire(before_offset, self._clock(), at_once) if self._refusal is None else 0
        finally:
            self.cleanup_lock.release()

    def _expire(self, before_offset: int, now: int, at_once: bool) -> int:
        start = max(before_offset, self._start_offset)
        if count_expired(self.segments, self.config, now=now, log_start_offset=start) == len(self._segments):
            self._roll_for_deletion()
        count = count_expired(self.segments, self.config, now=now, log_start_offset=start)
        with self._lock:
            expired = self._segments.take_first(min(count, len(self._segments) - 1))
            self._start_offset = max(self._start_offset, self._segments.first.base_offset)
        self._segments.forget(expired)
        for segment in expired:
            LOGGER.info("%s: deleting segment %d", self.directory.name, segment.base_offset)
        self._segments.remove_files(expired, now + self.config.file_delete_delay_ms)
        self._segments.delete_removed(None if at_once else now)
        return len(expired)

    def _roll_for_deletion(self) -> None:
        """Roll, so that the active segment can be deleted. On a full disk the other segments have to go first."""
        self.flush()  # before the log rolls, as in `_write`
        with self._lock:
            if self.recovery_point == self._end_offset:
                try:
                    self._roll(sync=True)
                except OSError as error:
                    LOGGER.warning("%s keeps its last segment until a new one can be made: %s", self.directory, error)

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Put a segment, written with the suffix `.cleaned`, in the place of neighbors. `cleanup_lock` is held.

        Raises OSError if nothing was replaced, and UnfinishedSwap.
        """
        next_offset = self._segments.next_offset(old[-1], self._end_offset)
        self._segments.begin_replacement(old, next_offset)
        swap.make_ready(new)
        try:
            with self._lock:
                self._segments.replace(old, new)
            self._segments.remove_files(old, self._clock() + self.config.file_delete_delay_ms)
            swap.put_in_place(new)
        except OSError as error:
            raise swap.UnfinishedSwap(str(error)) from error
        self._segments.note(new, next_offset)

    def manifest_entries(self) -> list[SegmentEntry]:
        """Return the segments' entries for the manifest, while nothing is appended. Raises OSError."""
        return self._segments.entries(self._end_offset)

    def manifest_entries_at_stop(self) -> list[SegmentEntry]:
        """Return the entries of a closed log for the manifest. Raises OSError."""
        return self._segments.entries_at_stop(self._end_offset)

    def last_batches_of_producers(self) -> dict[int, LastBatch]:
        """By producer id."""
        with self._lock:
            return self._producers.last_batches()

    def active_producers(self, only: int | None = None) -> list[ActiveProducer]:
        """Those that are remembered; or the one with this id, if it is."""
        with self._lock:
            return self._producers.active(only)

    # -- disk

    def flush(self) -> None:
        """Return once everything that is in the log now is on disk.  Raises KAFKA_STORAGE_ERROR."""
        self._commit.sync(self._end_offset, self._unsynced, self._clock)

    def _unsynced(self, recovery_point: int) -> Unsynced:
        with self._lock:
            self._segments.active.check_file()
            segments = self._segments.from_offset(recovery_point)
            return Unsynced(self._end_offset, segments, self.directory, self._names_made)

    def flush_if_due(self) -> None:
        """Sync if the last sync is `flush.ms` ago, or if segments that are no longer written to are not on disk."""
        unsynced_segments = self.recovery_point < self._segments.active.base_offset
        since = self._clock() - self._commit.synced_at
        too_long = self.recovery_point < self._end_offset and since >= self.config.flush_ms
        if unsynced_segments or too_long:
            self.flush()

    def reconfigure(self, config: LogConfig) -> None:
        """Heed these settings from now on, in the active segment too."""
        with self._lock:
            self.config = config
            for segment in self._segments:
                segment.config = config

    def refuse(self, reason: KafkaError) -> None:
        """Take nothing more, for this reason: the log is closed or deleted."""
        with self._lock:
            self._refusal = reason

    def moved(self, directory: Path) -> None:
        """The directory has another name, as a deleted one has; with NAMES held."""
        self.directory = directory
        self._segments.moved(directory)

    def close(self) -> None:
        """Take nothing more, sync all, leave a snapshot of the producers, let go of the files.

        What is at work on the segments comes to its end first: after this nothing in the directory changes. Raises
        KAFKA_STORAGE_ERROR, OSError, and then the next start has to check the log.
        """
        self.refuse(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker stops"))
        with self.cleanup_lock:
            self.flush()
            with self._lock:
                self._segments.active.check_file()
                self._write_snapshot()
                for segment in self._segments:
                    segment.close()
            self._segments.delete_removed()
