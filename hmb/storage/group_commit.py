"""Group commit: producers that wait for the disk at the same time share one sync.

A sync takes as long for a hundred batches as for one, so it does not pay to make one for each.  Only one is under way
at a time.  Who comes meanwhile waits for its end: his batch may have been too late for it, but the next sync is for all
who have come until it begins, and all but the first of them find their batches on disk already::

    appends     a   b c d        e
    syncs        [a     ][b c d    ][e   ...
    answers             a          b c d

The *recovery point* is how far the last sync reached; after a crash only what lies behind it has to be checked.

After a failed sync nobody knows what the disk holds: the kernel may have dropped the pages, and the next sync would
succeed without them.  So it is never tried again, and the log takes nothing more.

Source: DeWitt et al., Implementation Techniques for Main Memory Database Systems (1984); Kafka's `UnifiedLog.flush`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.files import open_directory
from hmb.storage.segment import Segment


class Unsynced(NamedTuple):
    """What has to be synced so that a log is on disk up to `end_offset`."""

    end_offset: int
    segments: Sequence[Segment]
    directory: Path
    names_made: int  # in the directory, how many so far


class GroupCommit:
    """The syncs of one log."""

    def __init__(self, directory: Path, recovery_point: int, now: int) -> None:
        self.recovery_point = recovery_point
        self.synced_at = now  # ms
        self._directory = directory
        self._names_synced = 0
        self._failure: OSError | None = None
        self._lock = threading.Lock()  # held during a sync; the log's lock is taken under it

    def sync(self, end_offset: int, begin: Callable[[int], Unsynced], clock: Callable[[], int]) -> None:
        """Return once everything before `end_offset` is on disk; `begin` says what is not, from the recovery point on.

        Raises KAFKA_STORAGE_ERROR.
        """
        with self._lock:
            self.raise_if_failed()
            if self.recovery_point >= end_offset:
                return  # somebody else's sync has covered it
            unsynced = begin(self.recovery_point)
            directory, has_new_names = unsynced.directory, unsynced.names_made > self._names_synced
            with ExitStack() as opened:
                try:
                    _held = [segment.file for segment in unsynced.segments]
                    directories = (directory, directory.parent) if has_new_names else ()
                    descriptors = [opened.enter_context(open_directory(path)) for path in directories]
                except OSError as error:  # out of descriptors is no failed sync: the next one may do better
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot sync {directory}: {error}") from error
                self._sync(unsynced.segments, descriptors)
            self._names_synced = unsynced.names_made
            self.recovery_point, self.synced_at = unsynced.end_offset, clock()

    def _sync(self, segments: Sequence[Segment], directories: Sequence[int]) -> None:
        """Sync what is open already: whatever fails here is the disk."""
        try:
            for segment in segments:
                segment.flush()
            for directory in directories:
                os.fsync(directory)
        except OSError as error:
            self._failure = error
            self.raise_if_failed()

    def raise_if_failed(self) -> None:
        if self._failure is not None:
            why = f"{self._directory} could not be synced ({self._failure}); mend the disk, restart"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why)
