"""Group commit: producers that wait for the disk at the same time share one sync.

A sync takes as long for a hundred batches as for one. So one sync for each batch would be a waste. Only one sync of a
log runs at a time. A producer that arrives during a sync waits for the next one, because its batch may have been
written too late for the first. That next sync covers every batch that was written before it starts::

    appends     a   b c d        e
    syncs        [a     ][b c d    ][e   ...
    answers             a          b c d

The *recovery point* is the offset up to which the last sync reached. After a crash only records from there on have to
be checked.

After a sync that failed nobody knows what the disk contains: the kernel may have dropped the pages, and the next sync
would succeed without them. So the broker never tries it again, and the log refuses all further appends.

Source: DeWitt et al., Implementation Techniques for Main Memory Database Systems (1984); Kafka's `UnifiedLog.flush`.
"""

from __future__ import annotations

import contextlib
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
    """The syncs of one log."""

    def __init__(
        self, directory: Path, recovery_point: int, now: int, on_names_synced: Callable[[Segment, int], None]
    ) -> None:
        """After a sync of new files, `on_names_synced` is called with the log's active segment and its end offset."""
        self.recovery_point = recovery_point
        self.synced_at = now  # ms
        self._directory = directory
        self._on_names_synced = on_names_synced
        self._names_synced = 0
        self._failure: OSError | None = None
        self._lock = threading.Lock()  # held during a sync; the log's lock is taken under it

    def sync(self, end_offset: int, begin: Callable[[int], Unsynced], clock: Callable[[], int]) -> None:
        """Return when all records at offsets below `end_offset` are on disk.

        `begin` takes the recovery point and returns what is not on disk from there on. Raises KAFKA_STORAGE_ERROR.
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
            except OSError as error:  # a file could not be opened, so no sync has failed: the next one may succeed
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
            segment.release()  # it is complete and on disk: it needs no descriptor until a client reads from it

    def fail(self, failure: OSError) -> None:
        """Refuse appends and syncs from now on. The content of the log's files is unknown until the next start."""
        if self._failure is None:
            LOGGER.error("%s; the log takes nothing more until the next start", failure)
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


def sync_in_background(flush: Callable[[], None], name: str) -> None:
    """Sync a log in a thread of its own. The sync before the next roll, for which producers wait, is then short."""

    def run() -> None:
        with contextlib.suppress(KafkaError):  # the group commit remembers a failed sync; the next append raises it
            flush()

    threading.Thread(target=run, name=f"sync-{name}", daemon=True).start()
