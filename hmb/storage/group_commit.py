"""Group commit: producers that wait for the disk at the same time share one sync.

A sync takes as long for a hundred batches as for one. So one sync for each batch would waste time. Only one sync of a
log runs at a time. A producer that arrives during a sync waits for the next sync, because its batch may have been
written too late for the current one. The next sync covers every batch that was written before it starts::

    appends     a   b c d        e
    syncs        [a     ][b c d    ][e   ...
    answers             a          b c d

The *recovery point* is the offset up to which the last sync reached. After a crash only records from this offset on
have to be checked.

After a failed sync nobody knows which bytes are on disk. The kernel may have dropped the pages, and a second sync
would succeed without them. So the broker never tries it again, and the log refuses all further appends.

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
from hmb.storage.files.virtual import SyncFailed
from hmb.storage.segment import Segment

LOGGER = logging.getLogger(__name__)
SYNC_AHEAD = 16 << 20  # bytes that are appended before a sync in the background


class Unsynced(NamedTuple):
    """The files and directories that have to be synced so that a log is on disk up to `end_offset`."""

    end_offset: int
    segments: Sequence[Segment]  # the active segment is the last one
    directory: Path
    names_made: int  # how many files were created in the directory since the log was opened


class GroupCommit:
    """Syncs one log, and knows its recovery point."""

    def __init__(
        self, directory: Path, recovery_point: int, now: int, on_names_synced: Callable[[Segment, int], None]
    ) -> None:
        """After a sync of new files, `on_names_synced` is called with the log's active segment and its end offset."""
        self.recovery_point = recovery_point
        self.synced_at = now  # time of the last sync (ms)
        self._directory = directory
        self._on_names_synced = on_names_synced
        self._names_synced = 0
        self._synced_ahead = 0  # size (bytes) of the active segment when the last sync ahead began
        self._is_syncing_ahead = False  # whether the thread of a sync ahead runs
        self._failure: OSError | None = None
        self._lock = threading.Lock()  # held during a sync; the log's lock is taken under it

    def sync(self, end_offset: int, begin: Callable[[int], Unsynced], clock: Callable[[], int]) -> None:
        """Return when all records at offsets below `end_offset` are on disk.

        `begin` takes the recovery point and returns the files that are not on disk from this offset on. Raises
        KAFKA_STORAGE_ERROR.
        """
        with self._lock:
            self.raise_if_failed()
            if self.recovery_point >= end_offset:
                return  # the sync of another thread has covered these records
            try:
                unsynced = begin(self.recovery_point)
                self._sync(unsynced)
            except SyncFailed as error:
                self.fail(error)
                self.raise_if_failed()
            except OSError as error:  # A file could not be opened. No sync has failed, so the next one may succeed.
                why = f"cannot sync {self._directory}: {error}"
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why) from error
            if unsynced.names_made > self._names_synced:
                self._on_names_synced(unsynced.segments[-1], unsynced.end_offset)
            self._names_synced = unsynced.names_made
            self.recovery_point, self.synced_at = unsynced.end_offset, clock()

    def _sync(self, unsynced: Unsynced) -> None:
        directory = unsynced.directory
        for segment in unsynced.segments:
            segment.flush()
        if unsynced.names_made > self._names_synced:
            for path in (directory, directory.parent):
                sync_directory(path)
        for segment in unsynced.segments[:-1]:
            segment.release()  # A complete segment on disk needs no descriptor until a client reads from it.

    def sync_ahead(self, size: int, flush: Callable[[], None]) -> None:
        """Call `flush` in a thread if the active segment, of `size` bytes, has grown by SYNC_AHEAD since the last time.

        The sync before the next roll, for which producers wait, is then short. One such thread runs at a time. The
        caller holds the log's lock.
        """
        self._synced_ahead = min(self._synced_ahead, size)  # A new segment begins at 0.
        if self._is_syncing_ahead or size - self._synced_ahead < SYNC_AHEAD:
            return
        self._synced_ahead, self._is_syncing_ahead = size, True

        def run() -> None:
            try:
                flush()
            except KafkaError:  # The object keeps the error of a failed sync, and the next append raises it.
                pass
            finally:
                self._is_syncing_ahead = False

        threading.Thread(target=run, name=f"sync-{self._directory.name}", daemon=True).start()

    def fail(self, failure: OSError) -> None:
        """Refuse appends and syncs from now on. The content of the log's files is unknown until the next start."""
        if self._failure is None:
            LOGGER.error("%s; the log refuses appends until the next start", failure)
            self._failure = failure

    @property
    def has_failed(self) -> bool:
        """Whether a sync has failed, so that the log refuses appends until the next start."""
        return self._failure is not None

    def raise_if_failed(self) -> None:
        """Raise KAFKA_STORAGE_ERROR if a sync has failed since the start."""
        if self._failure is not None:
            why = f"{self._directory} could not be synced ({self._failure}); repair the disk, then restart the broker"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why)
