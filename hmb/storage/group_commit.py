"""Group commit: producers that wait for the disk at the same time share one sync.

A sync writes the data of a file from the kernel's memory to the disk. A sync of a hundred batches takes as long as a
sync of one batch, so a separate sync for each batch would waste time.

Only one sync of a log runs at a time. Each sync covers every batch that was written before the sync started. A
batch that is written during a sync may be too late for this sync. So its producer waits for the next sync. In
this drawing, the batches b, c and d are written during the first sync, and share the second sync:
    appends     a   b c d        e
    syncs        [a     ][b c d    ][e   ...
    responses           a          b c d

For example, a sync takes 5 ms. With one sync for each batch, the log accepts at most 200 batches a second. If 50
producers wait at the same time, one sync covers 50 batches, and the log accepts up to 10,000 batches a second.

The *recovery point* is an offset: all records at lower offsets are on disk, because the last sync has written
them.

After a crash, the broker checks all batches of the active segment. If the manifest (a list of all segments) is
missing, the broker also checks the older segments that end after the recovery point.

If the broker finds damaged batches below the recovery point, it restores or replaces them. If the active
segment has damaged bytes at or above the recovery point, the log ends before these bytes (recovery/repair.py).

After a failed sync, nobody knows which bytes are on disk. The kernel may have dropped the bytes that it could not
write. A second sync would then succeed, although these bytes are lost. So the broker never repeats a failed sync, and
the log refuses all further appends.

Source: DeWitt et al., Implementation Techniques for Main Memory Database Systems (1984); Kafka's `UnifiedLog.flush`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.files.durability import sync_directory
from hmb.storage.files.together import release
from hmb.storage.files.virtual import SyncFailed
from hmb.storage.segment import Segment

LOGGER = logging.getLogger(__name__)
SYNC_AHEAD = 16 << 20  # bytes; whenever the active segment has grown by this size, a thread syncs the log


class Unsynced(NamedTuple):
    """The files that a sync must write to the disk, so that all records below `end_offset` are on disk."""

    end_offset: int
    segments: Sequence[Segment]  # the active segment is the last one
    directory: Path
    files_created: int  # how many files were created in the directory since the log was opened


class GroupCommit:
    """Syncs one log on behalf of all its producers, and keeps the log's recovery point.

    Invariants:
    - All records at offsets below `recovery_point` are on disk, and `recovery_point` never decreases.
    - At most one thread syncs the log at a time.
    - After a failed sync, no append and no sync succeeds.
    """

    def __init__(
        self, directory: Path, recovery_point: int, now: int, on_directory_synced: Callable[[Segment, int], None]
    ) -> None:
        """Store the recovery point, and the time `now` (ms) at which the log is opened.

        The first sync also syncs the log's directory. A later sync does so only if the log has created files since the
        previous sync. A power cut can remove new files from an unsynced directory.

        After a sync of the directory, `sync` calls `on_directory_synced` with the active segment and the log's end
        offset.
        """
        self.recovery_point = recovery_point
        self.synced_at = now  # time of the last sync (ms)
        self.syncs = 0  # number of syncs since the log was opened
        self._directory = directory
        self._on_directory_synced = on_directory_synced
        self._files_synced = 0
        self._synced_ahead = 0  # size (bytes) of the active segment when `sync_ahead` last started a sync
        self._is_syncing_ahead = False  # whether the thread started by `sync_ahead` is still running
        self._failure: OSError | None = None
        # The thread that syncs the log holds `_lock`, and can also take the log's lock during the sync. Only this
        # thread changes `recovery_point`, `synced_at`, `syncs` and `_files_synced`. Other threads read the first three
        # fields without `_lock`, and can get an old value. An old value causes at most one unnecessary call of `sync`.
        #
        # `sync_ahead` can start a thread that syncs the log before the active segment is full. At its end, this thread
        # sets `_is_syncing_ahead` to False without a lock. For all other changes of `_is_syncing_ahead` and
        # `_synced_ahead`, a thread must hold the log's lock.
        #
        # `_failure` is the error after which the log refuses all appends. A thread that sets `_failure` holds `_lock`
        # or the log's lock. So two threads can set it at the same time, and one error is lost. But one error is enough
        # to refuse all appends. Threads read `_failure` without a lock, because it never becomes None again.
        self._lock = threading.Lock()

    def sync(self, end_offset: int, begin: Callable[[int], Unsynced], clock: Callable[[], int]) -> None:
        """Write all records below `end_offset` to the disk, and wait until they are on disk.

        The method calls `begin` with the recovery point: all records below this offset are already on disk. `begin`
        returns the files that contain the later records. `clock` returns the time in ms.

        Raises KAFKA_STORAGE_ERROR in these cases:

        - A file cannot be opened. A later call can succeed.
        - This sync or an earlier sync has failed.
        - The log has found that another process has removed, replaced or cut one of its files.
        """
        with self._lock:
            self.raise_if_failed()
            if self.recovery_point >= end_offset:
                return  # The sync of another thread has already written these records to the disk.
            try:
                unsynced = begin(self.recovery_point)
                self._sync(unsynced)
            except SyncFailed as error:
                self.fail(error)
                self.raise_if_failed()
            except OSError as error:  # A file could not be opened. No sync has failed, so the next one may succeed.
                why = f"cannot sync {self._directory}: {error}"
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why) from error
            if unsynced.files_created > self._files_synced:
                self._on_directory_synced(unsynced.segments[-1], unsynced.end_offset)
            self._files_synced = unsynced.files_created
            self.recovery_point, self.synced_at = unsynced.end_offset, clock()
            self.syncs += 1

    def _sync(self, unsynced: Unsynced) -> None:
        directory = unsynced.directory
        for segment in unsynced.segments:
            segment.flush()
        if unsynced.files_created > self._files_synced:
            for path in (directory, directory.parent):
                sync_directory(path)
        for segment in unsynced.segments[:-1]:
            release(segment.files)  # This segment is complete and on disk. A later read opens the files again.

    def sync_ahead(self, size: int, flush: Callable[[], None]) -> None:
        """Sync the log in a new thread (with `flush`) if the active segment has grown by SYNC_AHEAD bytes.

        `size` is the present size of the active segment in bytes. SYNC_AHEAD is 16 MiB, so a thread usually starts when
        the segment has about 16 MiB, 32 MiB, 48 MiB, and so on. While this thread is running, the method starts no
        other thread. The caller holds the log's lock.

        When a segment is full, producers must wait until all its bytes are on disk. The wait is short if a thread has
        already synced most of the bytes.
        """
        self._synced_ahead = min(self._synced_ahead, size)  # After a roll, the new segment's size begins at 0.
        if self._is_syncing_ahead or size - self._synced_ahead < SYNC_AHEAD:
            return
        self._synced_ahead, self._is_syncing_ahead = size, True

        def run() -> None:
            try:
                flush()
            except KafkaError:  # This object has stored the error, and the next append raises it.
                pass
            finally:
                self._is_syncing_ahead = False

        threading.Thread(target=run, name=f"sync-{self._directory.name}", daemon=True).start()

    def fail(self, failure: OSError) -> None:
        """Make the log refuse all appends and syncs until the broker restarts.

        After `failure`, the broker no longer knows what the log's files contain.
        """
        if self._failure is None:
            LOGGER.error("%s; the log refuses appends until the next start", failure)
            self._failure = failure

    @property
    def has_failed(self) -> bool:
        """Whether the log refuses all appends until the broker restarts.

        The log refuses appends after a failed sync, or if another process has removed, replaced or cut a log file.
        """
        return self._failure is not None

    def raise_if_failed(self) -> None:
        """Raise KAFKA_STORAGE_ERROR if a sync failed, or if another process removed, replaced or cut a log file."""
        if self._failure is not None:
            why = f"{self._directory} could not be synced ({self._failure}); repair the disk, then restart the broker"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why)
