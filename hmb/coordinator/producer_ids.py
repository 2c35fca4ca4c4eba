"""Producer ids: the broker assigns each id once, over all restarts.

A log remembers producers by their ids. If two producers had the same id, the log would take the records of the second
for duplicates of the first. So the broker reserves ids on disk in blocks, before it assigns the first id of a block.
A restart wastes the rest of a block, which costs little: there are 2^63 ids.

The reserved ids are not the whole truth. The file may be lost, or another broker may have assigned ids while it used
the directory. So the counter also starts above the ids in the logs. A client can write any id into a batch,
therefore only ids up to HIGHEST_ASSIGNED_ID count.

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
    """A producer as its batches name it: one with a greater epoch has taken the older one's place."""

    producer_id: int
    epoch: int


class ProducerIds:
    """Gives out producer ids; the file holds the first id that is not reserved, as decimal text."""

    def __init__(self, path: Path, manifest: Manifest, highest_in_use: int = -1) -> None:
        """`highest_in_use` is the greatest assigned id that the logs contain, or -1."""
        self._path = path
        self._manifest = manifest
        self._highest_in_use = highest_in_use
        self._lock = threading.Lock()  # guards the two numbers
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
        """Assign only greater ids from now on: a broker, perhaps another one, has assigned this id."""
        with self._lock:
            if producer_id >= self._next:
                self._highest_in_use = max(self._highest_in_use, producer_id)
                self._next = self._reserved  # the rest of the block is given up

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
        """Return the first id that is not reserved; if the file is damaged, one that counting has not reached."""
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
