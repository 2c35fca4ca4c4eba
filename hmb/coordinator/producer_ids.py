"""Producer ids: the broker assigns each id once, over all restarts.

A log identifies producers by their ids. If two producers had the same id, the log would treat the records of the
second as duplicates of the first. The broker therefore reserves ids in blocks. It writes the end of a block to a file
before it assigns the first id of the block. A restart wastes the rest of a block, which costs little: 2^63 ids exist.

For example, a first start writes 1000 to the file and assigns the ids 0, 1 and 2. The next start writes 2000 and
continues with id 1000.

The file can be lost, or another broker can have assigned ids while it used the directory. The counter therefore also
starts above the ids in the logs. A client can write any id into a batch, so only ids up to `HIGHEST_ASSIGNED_ID` of the
logs count.

Source: KIP-98; Kafka's `ProducerIdManager`.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.state.manifest import DamagedStateFile, Manifest

LOGGER = logging.getLogger(__name__)
BLOCK_SIZE = 1000
MAX_ID = 2**63 - 1  # an int64 on the wire


class ProducerIdAndEpoch(NamedTuple):
    """The identity of a producer in its batches. A greater epoch fences all older epochs of the same id."""

    producer_id: int
    epoch: int


class ProducerIds:
    """The assignment of producer ids. The file contains the first id that is not reserved, as decimal text."""

    def __init__(self, path: Path, manifest: Manifest, highest_in_use: int = -1) -> None:
        """`highest_in_use` is the greatest assigned id that the logs contain, or -1."""
        self._path = path
        self._manifest = manifest
        self._highest_in_use = highest_in_use
        self._lock = threading.Lock()  # guards `_next`, `_reserved` and `_highest_in_use`
        self._next = self._reserved = 0

    def allocate(self) -> int:
        """Return a new id.

        Raises KAFKA_STORAGE_ERROR if the next block cannot be written, UNKNOWN_SERVER_ERROR if no id is left.
        """
        with self._lock:
            if self._next == self._reserved:
                self._reserve()
            self._next += 1
            return self._next - 1

    def note(self, producer_id: int) -> None:
        """Assign only ids greater than `producer_id` from now on, because a broker has already assigned it."""
        with self._lock:
            if producer_id >= self._next:
                self._highest_in_use = max(self._highest_in_use, producer_id)
                self._next = self._reserved  # The remaining ids of the reserved block are not assigned.

    def _reserve(self) -> None:
        try:
            start = max(self._read(), self._highest_in_use + 1)
            if start + BLOCK_SIZE > MAX_ID:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids have been assigned")
            self._manifest.replace_file(self._path, str(start + BLOCK_SIZE))
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"cannot reserve producer ids in {self._path}: {error}"
            ) from error
        self._next, self._reserved = start, start + BLOCK_SIZE

    def _read(self) -> int:
        """Return the first id that is not reserved.

        If the file is damaged, return the time in ms. No counter has reached such a great number.
        """
        why = "does not contain a producer id"
        try:
            self._manifest.check(self._path)
            start = int(self._path.read_text(encoding="utf-8")) if self._path.exists() else 0
            if 0 <= start <= MAX_ID:
                return start
        except ValueError:
            pass
        except DamagedStateFile as error:
            why = f"cannot be used: {error}"
        start = time.time_ns() // 1_000_000
        LOGGER.error("%s %s; producer ids continue at %d (the time in ms)", self._path, why, start)
        return start
