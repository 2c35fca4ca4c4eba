"""Faults of the disk: a disk that is slow, full or failing, and a damaged batch.

A test cannot fill the real disk of its computer. The log writes its files with two functions: `os.pwritev` and
`os.fdatasync`. While a fault exists, `DiskFaults` replaces these two functions. A broker without faults calls the
original functions, so it does no additional work:
    Log.append -> VirtualFile.write -> os.pwritev     without a fault: the system call
                                                      with a fault:    OSError(ENOSPC), or a wait and the system call

Several brokers can run in one process, and `DiskFaults` replaces the functions that write and sync files for
all of them. But each fault applies only to files in the data directory of its broker. A fault for one topic
applies only to files in the directories of this topic. `DiskFaults` knows the path of the data directory only
after the broker's first start. Before this start, the broker's faults have no effect.

Limits: faults change only writes and syncs of the log's files. Reads never fail: the broker reads most records
with the system call `sendfile`, which `DiskFaults` does not replace. `DiskFaults` works only on Linux, because
it finds the path of an open file in /proc/self/fd.

After a failed sync, the log refuses writes until the next start of the broker. A simulated failure of a sync
has the same effect as a real failure.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hmb.broker.lifecycle import BrokerServer
from hmb.defaults import DISK_FAULT_KINDS, DiskFaultKind
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.records.batch import LOG_OVERHEAD
from hmb.storage.files.virtual import FileRegion, Parts
from hmb.testing import arguments
from hmb.testing.arguments import Seconds, check_text
from hmb.testing.errors import BrokerNotRunning, FaultError

LOGGER = logging.getLogger(__name__)
ERRORS = {"full": errno.ENOSPC, "failing": errno.EIO}
PWRITEV, FDATASYNC = os.pwritev, os.fdatasync
CHANGED = threading.Lock()  # guards ACTIVE, os.pwritev and os.fdatasync


@dataclass(eq=False, slots=True)
class DiskFault:
    """A fault for all log files of one broker, or only for one topic's files.

    Two faults are never equal, even if all their values are the same.
    """

    kind: DiskFaultKind
    topic: str | None
    seconds: float  # how long a slow disk waits before each write and each sync; 0 for other kinds
    broker: DiskFaults

    def concerns(self, descriptor: int) -> bool:
        directory = self.broker.directory
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        is_topic = self.topic is None or path.parent.name.rpartition("-")[0] == self.topic
        return is_topic and directory is not None and path.is_relative_to(directory)

    def on_write(self) -> None:
        """Simulate this fault before a write: wait if the disk is slow, and raise OSError if it is full or failing."""
        LOGGER.info("a fault simulates a %s disk during a write or a sync", self.kind)
        if self.kind == "slow":
            time.sleep(self.seconds)
        else:
            raise OSError(ERRORS[self.kind], os.strerror(ERRORS[self.kind]))

    def on_sync(self) -> None:
        """Simulate this fault before a sync: wait if the disk is slow, and raise OSError if the disk is failing.

        A full disk does not disturb a sync, because a sync needs no more space.
        """
        if self.kind != "full":
            self.on_write()


class DiskFaults:
    """The faults of one broker's disk. Thread-safe."""

    def __init__(self) -> None:
        self._server: BrokerServer | None = None
        self.directory: Path | None = None  # the broker's data directory; None before the broker's first start

    def attach(self, server: BrokerServer) -> None:
        """Apply the faults to the files of a started broker."""
        self._server = server
        self.directory = server.data_dir.resolve()

    def detach(self) -> None:
        """Drop the reference to the running broker, because it is about to stop.

        The faults remain. They apply to the broker's files while it stops, and after its next start.
        """
        self._server = None

    def add(self, kind: DiskFaultKind, *, topic: str | None = None, seconds: Seconds = 0.0) -> DiskFault:
        """Add a fault for all log files of the broker, or only for the log files of `topic`. Return the fault.

        `kind` is one of these words:

        - `full`: each write fails with "no space left on device".
        - `failing`: each write and each sync fails with an input/output error.
        - `slow`: each write and each sync first waits for `seconds` (a number, or a text such as `500ms`).

        Raises FaultError if an argument is invalid, a slow disk has no `seconds`, or another kind has `seconds`.
        """
        if kind not in DISK_FAULT_KINDS:
            raise FaultError(f"the disk cannot be {kind!r}; possible: {', '.join(DISK_FAULT_KINDS)}")
        check_text("topic", topic)
        wait = arguments.seconds("seconds", seconds)
        if (kind == "slow") != (wait > 0):
            raise FaultError(
                "a slow disk requires the parameter 'seconds' with a value above 0; "
                "a full or failing disk does not allow the parameter 'seconds'"
            )
        fault = DiskFault(kind, topic, wait, self)
        with CHANGED:
            ACTIVE.append(fault)
            os.pwritev = _pwritev  # type: ignore[assignment]
            os.fdatasync = _fdatasync  # type: ignore[assignment]
        return fault

    def remove(self, fault: DiskFault) -> None:
        """Remove a fault. The fault may already be removed, for example by `clear`.

        A broker refuses records after its disk was full. Once a second, it checks whether the disk has space
        again. If `fault` has the kind `full`, the method starts this check immediately. The next test can then
        write records without waiting.
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
        """The existing faults of this broker's disk, oldest first."""
        with CHANGED:
            return [fault for fault in ACTIVE if fault.broker is self]

    @contextmanager
    def _during(self, kind: DiskFaultKind, topic: str | None, seconds: Seconds = 0.0) -> Iterator[None]:
        fault = self.add(kind, topic=topic, seconds=seconds)
        try:
            yield
        finally:
            self.remove(fault)

    def full(self, topic: str | None = None) -> AbstractContextManager[None]:
        """Make each write fail with "no space left on device" until the end of the `with` block (see `add`)."""
        return self._during("full", topic)

    def failing(self, topic: str | None = None) -> AbstractContextManager[None]:
        """Make each write and each sync fail with an I/O error until the end of the `with` block (see `add`)."""
        return self._during("failing", topic)

    def slow(self, seconds: Seconds, topic: str | None = None) -> AbstractContextManager[None]:
        """Delay each write and each sync by `seconds` until the end of the `with` block (see `add`)."""
        return self._during("slow", topic, arguments.seconds("seconds", seconds))

    def corrupt(self, topic: str, offset: int = 0, partition: int = 0) -> None:
        """Damage the batch that contains `offset`: change one byte, so that the CRC of the batch is wrong.

        A client that receives the damaged batch detects the wrong CRC. The broker counts the fetches that begin at each
        offset, and checks the batch at fetch 2, 4, 8, and so on. If the check finds the damage, the broker replaces the
        batch by an empty batch, and returns the following batches.

        Raises BrokerNotRunning if the broker is not running. Raises KafkaError with UNKNOWN_TOPIC_OR_PARTITION if the
        partition does not exist, and with OFFSET_OUT_OF_RANGE if no batch contains `offset`.
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
            raise BrokerNotRunning
        return self._server


ACTIVE: list[DiskFault] = []  # the existing faults of all brokers in this process


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
