"""Producer ids: the broker assigns each id only once, even if the broker restarts.

A log identifies a producer by its id. If two producers had the same id, the log could treat records of the second
producer as duplicates of the first producer's records. So the broker must never assign an id twice, even after a crash.

The broker reserves ids in blocks of 1,000. Before it assigns the first id of a block, it writes the first id after the
block to a file. After a restart, the broker begins a new block, and the other ids of the last block stay unused. This
does no harm, because 2^63 ids exist.

For example, a new broker reserves the ids 0 to 999, so it writes 1000 to the file. This number is the first id that is
not reserved. The broker then assigns the ids 0, 1 and 2. After a restart, it reads 1000 from the file, reserves the ids
1000 to 1999, and writes 2000 to the file. The next id that it assigns is 1000.

The file with the reserved ids can be lost. It can also be out of date: if Kafka uses the data directory, Kafka assigns
new ids without changing this file. At each start, the broker therefore reads the producer ids in its logs, and assigns
only greater ids.

A client can write any number as the producer id of a batch, so not every id in a log was assigned by a broker. When the
broker reads the ids in its logs, it ignores ids above `HIGHEST_ASSIGNED_ID`.

Source: KIP-98; Kafka's `ProducerIdManager`.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from hmb.protocol.enums import INT64_MAX
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.state.manifest import DamagedStateFile, Manifest
from hmb.units import now_ms

LOGGER = logging.getLogger(__name__)
BLOCK_SIZE = 1000


class ProducerIds:
    """Assigns producer ids. Thread-safe.

    A file contains the first id that is not reserved, as decimal text.

    - The broker has reserved the ids from `_next` to `_reserved` - 1, but has not assigned them yet.
    - Each assigned id is less than the number in the file. A restarted broker begins with this number or a greater
      one, so it assigns no id twice.
    """

    def __init__(self, path: Path, manifest: Manifest, highest_in_use: int = -1) -> None:
        """Create an object that will reserve ids in the file at `path`.

        `highest_in_use` is the greatest assigned id in the logs, or -1 if no log contains an id.
        """
        self._path = path
        self._manifest = manifest
        self._highest_in_use = highest_in_use
        self._lock = threading.Lock()  # guards `_next`, `_reserved` and `_highest_in_use`
        self._next = self._reserved = 0

    def allocate(self) -> int:
        """Return an id that was never assigned before.

        Raises KAFKA_STORAGE_ERROR if the file cannot be written, and UNKNOWN_SERVER_ERROR if no id is left.
        """
        with self._lock:
            if self._next == self._reserved:
                self._reserve()
            self._next += 1
            return self._next - 1

    def skip_to(self, producer_id: int) -> None:
        """From now on, assign only ids greater than `producer_id`, because this id is already in use."""
        with self._lock:
            if producer_id >= self._next:
                self._highest_in_use = max(self._highest_in_use, producer_id)
                self._next = self._reserved  # The rest of the reserved block stays unused.

    def _reserve(self) -> None:
        try:
            start = max(self._read(), self._highest_in_use + 1)
            if start + BLOCK_SIZE > INT64_MAX:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids have been assigned")
            self._manifest.replace_file(self._path, str(start + BLOCK_SIZE))
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"cannot reserve producer ids in {self._path}: {error}"
            ) from error
        self._next, self._reserved = start, start + BLOCK_SIZE

    def _read(self) -> int:
        """Return the first id that is not reserved.

        If the file is damaged, return the time in ms since 1970. This number is greater than all assigned
        ids: ids start at 0, and on average, a broker assigns fewer than one id per ms.
        """
        why = "does not contain a producer id"
        try:
            self._manifest.check(self._path)
            start = int(self._path.read_text(encoding="utf-8")) if self._path.exists() else 0
            if 0 <= start <= INT64_MAX:
                return start
        except ValueError:
            pass
        except DamagedStateFile as error:
            why = f"cannot be used: {error}"
        start = now_ms()
        LOGGER.error("%s %s; the new producer ids begin at %d, which is the current time in ms", self._path, why, start)
        return start
