"""Faults of the disk: a disk that is slow, full or failing, and a damaged batch.

A test cannot fill the disk of the computer that it runs on. While a fault exists, `DiskFaults` replaces the two system
calls that write the files of logs: `os.pwritev` and `os.fdatasync`. A broker without faults does no additional work::

    Log.append -> VirtualFile.write -> os.pwritev     without a fault: the system call
                                                      with a fault:    OSError(ENOSPC), or a wait and the system call

The calls of the whole process are replaced. A fault therefore compares the path of each file with the broker's
directory, or with the directories of one topic. A fault of a broker that is not started yet concerns no file.

Limits: faults concern writes and syncs of segments. Reads work, because `sendfile` reads most records. The path of an
open file comes from /proc/self/fd, which only Linux has. After a failed sync, a log refuses writes until the broker
starts again, as it does on a real disk.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from hmb.broker.broker import BrokerServer
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.records.batch import LOG_OVERHEAD
from hmb.storage.files.virtual import FileRegion, Parts
from hmb.testing.faults import FaultError

Kind = Literal["full", "failing", "slow"]
ERRORS = {"full": errno.ENOSPC, "failing": errno.EIO}
PWRITEV, FDATASYNC = os.pwritev, os.fdatasync
CHANGED = threading.Lock()  # guards ACTIVE and the two functions of `os`


@dataclass(eq=False, slots=True)
class DiskFault:
    """A fault of the files of one broker, or of one topic's files. Two faults with the same values are two faults."""

    kind: Kind
    topic: str | None
    seconds: float  # the wait before each write and each sync of a slow disk
    broker: DiskFaults

    def concerns(self, descriptor: int) -> bool:
        directory = self.broker.directory
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        is_topic = self.topic is None or path.parent.name.rpartition("-")[0] == self.topic
        return is_topic and directory is not None and path.is_relative_to(directory)

    def on_write(self) -> None:
        """Wait, or raise OSError, before a write."""
        if self.kind == "slow":
            time.sleep(self.seconds)
        else:
            raise OSError(ERRORS[self.kind], os.strerror(ERRORS[self.kind]))

    def on_sync(self) -> None:
        """Wait, or raise OSError, before a sync. A full disk can sync what it has stored."""
        if self.kind != "full":
            self.on_write()


class DiskFaults:
    """The faults of one broker's disk. Thread-safe."""

    def __init__(self) -> None:
        self._server: BrokerServer | None = None
        self.directory: Path | None = None  # the directory of the broker's logs, or None before its first start

    def attach(self, server: BrokerServer) -> None:
        """Let the faults concern the files of a started broker."""
        self._server = server
        self.directory = server.data_dir.resolve()

    def detach(self) -> None:
        """Forget the broker, because it ends. The faults still concern its files, so they also hit its next start."""
        self._server = None

    def add(self, kind: Kind, *, topic: str | None = None, seconds: float = 0.0) -> DiskFault:
        """Add a fault of all files, or of one topic's files, and return it.

        The kinds:

        - `full`: a write fails with "no space left on device"
        - `failing`: a write and a sync fail with an input/output error
        - `slow`: each write and each sync waits for `seconds` first

        Raises FaultError if the fault is not possible.
        """
        if kind not in get_args(Kind):
            raise FaultError(f"the disk cannot be {kind!r}; possible: {', '.join(get_args(Kind))}")
        if (kind == "slow") != (seconds > 0):
            raise FaultError("a slow disk needs seconds > 0, and the other kinds have no seconds")
        fault = DiskFault(kind, topic, seconds, self)
        with CHANGED:
            ACTIVE.append(fault)
            os.pwritev = _pwritev  # type: ignore[assignment]
            os.fdatasync = _fdatasync  # type: ignore[assignment]
        return fault

    def remove(self, fault: DiskFault) -> None:
        """Remove a fault. Do nothing if it is removed already, for example by `clear`.

        A broker whose disk was full looks for free space once a second. After a fault it looks at once, so that the
        next test finds a broker that accepts records.
        """
        with CHANGED:
            if fault in ACTIVE:
                ACTIVE.remove(fault)
            if not ACTIVE:
                os.pwritev, os.fdatasync = PWRITEV, FDATASYNC
        if fault.kind == "full" and self._server is not None:
            self._server.logs.reserve.fill()

    def clear(self) -> None:
        """Remove all faults of this broker's disk."""
        for fault in self.added:
            self.remove(fault)

    @property
    def added(self) -> list[DiskFault]:
        """The faults that exist, in the order in which they were added."""
        with CHANGED:
            return [fault for fault in ACTIVE if fault.broker is self]

    @contextmanager
    def _during(self, kind: Kind, topic: str | None, seconds: float = 0.0) -> Iterator[None]:
        fault = self.add(kind, topic=topic, seconds=seconds)
        try:
            yield
        finally:
            self.remove(fault)

    def full(self, topic: str | None = None) -> AbstractContextManager[None]:
        """While a `with` block runs, writes fail with "no space left on device" (see `add`)."""
        return self._during("full", topic)

    def failing(self, topic: str | None = None) -> AbstractContextManager[None]:
        """While a `with` block runs, writes and syncs fail with an input/output error (see `add`)."""
        return self._during("failing", topic)

    def slow(self, seconds: float, topic: str | None = None) -> AbstractContextManager[None]:
        """While a `with` block runs, each write and each sync waits for `seconds` first (see `add`)."""
        return self._during("slow", topic, seconds)

    def corrupt(self, topic: str, offset: int = 0, partition: int = 0) -> None:
        """Change one byte of the batch that contains `offset`, so that its CRC is wrong.

        A client that fetches the batch with others finds the damage. If a fetch begins with the batch, the broker
        finds the damage, repairs the segment, and continues after the batch.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, OFFSET_OUT_OF_RANGE.
        """
        log = self._attached().context.topics.log_of(TopicPartition(topic, partition))
        records = log.read(offset, 1).records
        if not isinstance(records, FileRegion):
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{topic}-{partition} has no batch at offset {offset}")
        head = records.file.read(LOG_OVERHEAD, records.position)
        last = records.position + LOG_OVERHEAD + int.from_bytes(head[-4:], "big") - 1
        with records.file.path.open("r+b") as file:
            file.seek(last)
            (byte,) = file.read(1)
            file.seek(last)
            file.write(bytes([byte ^ 0xFF]))

    def _attached(self) -> BrokerServer:
        if self._server is None:
            raise FaultError("the broker is not started")
        return self._server


ACTIVE: list[DiskFault] = []  # the faults of all brokers in this process


def _pwritev(descriptor: int, parts: Parts, position: int) -> int:
    for fault in tuple(ACTIVE):
        if fault.concerns(descriptor):
            fault.on_write()
    return PWRITEV(descriptor, parts, position)


def _fdatasync(descriptor: int) -> None:
    for fault in tuple(ACTIVE):
        if fault.concerns(descriptor):
            fault.on_sync()
    FDATASYNC(descriptor)
