"""Faults of the disk: a disk that is slow, full or failing, and a damaged batch.

A test cannot fill the disk of the computer that it runs on. While a fault exists, `DiskFaults` replaces the two system
calls that write the files of logs: `os.pwritev` and `os.fdatasync`. A broker without faults does no additional work::

    Log.append -> VirtualFile.write -> os.pwritev     without a fault: the system call
                                                      with a fault:    OSError(ENOSPC), or a wait and the system call

The calls of the whole process are replaced. A fault therefore compares the path of each file with the broker's
directory, or with the directories of one topic.

Limits: faults concern writes and syncs of segments. Reads work, because `sendfile` reads most records. The path of an
open file comes from /proc/self/fd, which only Linux has. After a failed sync, a log refuses writes until the broker
starts again, as it does on a real disk.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.records.batch import LOG_OVERHEAD
from hmb.storage.files.virtual import FileRegion, Parts
from hmb.storage.log import Log

Fail = Callable[[], None]  # waits, or raises OSError
PWRITEV, FDATASYNC = os.pwritev, os.fdatasync
CHANGED = threading.Lock()  # guards ACTIVE and the two functions of `os`


class DiskFaults:
    """The faults of one broker's disk. Each fault is a context manager that ends with its block."""

    def __init__(self, directory: Callable[[], Path], log_of: Callable[[TopicPartition], Log]) -> None:
        self._directory = directory
        self._log_of = log_of

    @contextmanager
    def full(self, topic: str | None = None) -> Iterator[None]:
        """Let writes to a topic's files, or to all files, fail with "no space left on device"."""
        with self._fault(_raising(errno.ENOSPC), None, topic):
            yield

    @contextmanager
    def failing(self, topic: str | None = None) -> Iterator[None]:
        """Let writes and syncs of a topic's files, or of all files, fail with an input/output error."""
        with self._fault(_raising(errno.EIO), _raising(errno.EIO), topic):
            yield

    @contextmanager
    def slow(self, seconds: float, topic: str | None = None) -> Iterator[None]:
        """Let each write and each sync of a topic's files, or of all files, wait for `seconds` first."""

        def wait() -> None:
            time.sleep(seconds)

        with self._fault(wait, wait, topic):
            yield

    def corrupt(self, topic: str, offset: int = 0, partition: int = 0) -> None:
        """Change one byte of the batch that contains `offset`, so that its CRC is wrong.

        A client that fetches the batch with others finds the damage. If a fetch begins with the batch, the broker
        finds the damage, repairs the segment, and continues after the batch.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, OFFSET_OUT_OF_RANGE.
        """
        records = self._log_of(TopicPartition(topic, partition)).read(offset, 1).records
        if not isinstance(records, FileRegion):
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{topic}-{partition} has no batch at offset {offset}")
        head = records.file.read(LOG_OVERHEAD, records.position)
        last = records.position + LOG_OVERHEAD + int.from_bytes(head[-4:], "big") - 1
        with records.file.path.open("r+b") as file:
            file.seek(last)
            (byte,) = file.read(1)
            file.seek(last)
            file.write(bytes([byte ^ 0xFF]))

    @contextmanager
    def _fault(self, on_write: Fail, on_sync: Fail | None, topic: str | None) -> Iterator[None]:
        fault = _DiskFault(self._directory().resolve(), topic, on_write, on_sync)
        with CHANGED:
            ACTIVE.append(fault)
            os.pwritev = _pwritev  # type: ignore[assignment]
            os.fdatasync = _fdatasync  # type: ignore[assignment]
        try:
            yield
        finally:
            with CHANGED:
                ACTIVE.remove(fault)
                if not ACTIVE:
                    os.pwritev, os.fdatasync = PWRITEV, FDATASYNC


@dataclass(frozen=True, eq=False, slots=True)
class _DiskFault:
    """A fault of the files in one directory, or of one topic's files in it."""

    directory: Path
    topic: str | None
    on_write: Fail
    on_sync: Fail | None

    def concerns(self, descriptor: int) -> bool:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        is_topic = self.topic is None or path.parent.name.rpartition("-")[0] == self.topic
        return is_topic and path.is_relative_to(self.directory)


ACTIVE: list[_DiskFault] = []


def _pwritev(descriptor: int, parts: Parts, position: int) -> int:
    for fault in tuple(ACTIVE):
        if fault.concerns(descriptor):
            fault.on_write()
    return PWRITEV(descriptor, parts, position)


def _fdatasync(descriptor: int) -> None:
    for fault in tuple(ACTIVE):
        if fault.on_sync is not None and fault.concerns(descriptor):
            fault.on_sync()
    FDATASYNC(descriptor)


def _raising(code: int) -> Fail:
    def fail() -> None:
        raise OSError(code, os.strerror(code))

    return fail
