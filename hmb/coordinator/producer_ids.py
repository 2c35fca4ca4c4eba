"""Producer ids: each is given out once, over all restarts.

A log remembers producers by their ids, so an id that came twice would make a new producer's records look like repeats
of an old one's.  Ids are reserved on disk in blocks before any of a block is given out; a restart wastes the rest of a
block, which is cheap: there are 2^63 of them.

Source: KIP-98; Kafka's `ProducerIdManager`.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.manifest import DamagedStateFile, Manifest

LOGGER = logging.getLogger(__name__)
BLOCK_SIZE = 1000


class ProducerIdAndEpoch(NamedTuple):
    """A producer as its batches name it: one with a greater epoch has taken the older one's place."""

    producer_id: int
    epoch: int


class ProducerIds:
    """Gives out producer ids; the file holds the first id that is not reserved, as decimal text."""

    def __init__(self, path: Path, manifest: Manifest, highest_in_use: int = -1) -> None:
        """`highest_in_use`: ids up to it stand in logs, even where the file is lost or another broker gave them out."""
        self._path = path
        self._manifest = manifest
        self._highest_in_use = highest_in_use
        self._lock = threading.Lock()  # guards the two numbers
        self._next = self._reserved = 0

    def allocate(self) -> int:
        """A new id.  Raises KAFKA_STORAGE_ERROR where the next block cannot be written down."""
        with self._lock:
            if self._next == self._reserved:
                self._reserve()
            self._next += 1
            return self._next - 1

    def note(self, producer_id: int) -> None:
        """It was given out, perhaps by another broker: only greater ones are given out from now on."""
        with self._lock:
            if producer_id >= self._next:
                self._highest_in_use = max(self._highest_in_use, producer_id)
                self._next = self._reserved  # the rest of the block is given up

    def _reserve(self) -> None:
        try:
            start = max(self._read(), self._highest_in_use + 1)
            self._manifest.replace_file(self._path, str(start + BLOCK_SIZE))
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"cannot reserve producer ids in {self._path}: {error}"
            ) from error
        self._next, self._reserved = start, start + BLOCK_SIZE

    def _read(self) -> int:
        """Return the first id that is not reserved. If the file is damaged, return one that nobody can have reached."""
        why = "is not a number from 0 to 2^62"
        try:
            self._manifest.check(self._path)
            start = int(self._path.read_text(encoding="utf-8")) if self._path.exists() else 0
            if 0 <= start < 2**62:
                return start
        except ValueError:
            pass
        except DamagedStateFile as error:
            why = f"cannot be used: {error}"
        start = time.time_ns() // 1_000_000
        LOGGER.error("%s %s; producer ids go on at the present time in ms, %d", self._path, why, start)
        return start
