"""Snapshots in memory. The snapshots survive a crash of a processor, but they are lost when the process ends."""

from __future__ import annotations

import threading

from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import SnapshotError
from hmb.hailstorm.snapshots.store import Fingerprint, SnapshotListing, check_epoch, check_fingerprint


class MemorySnapshotStore:
    """A snapshot store in memory. All threads of one process can use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the fields below
        self._fingerprint: Fingerprint | None = None
        self._epoch = 0
        self._completed: Clock | None = None
        self._saved: dict[str, dict[Clock, tuple[int, bytes]]] = {}  # processor -> clock -> (epoch, encoded state)

    def claim(self, fingerprint: Fingerprint) -> None:
        with self._lock:
            check_fingerprint(self._fingerprint, fingerprint, "the store")
            self._fingerprint = fingerprint

    def begin_epoch(self) -> int:
        with self._lock:
            self._epoch += 1
            return self._epoch

    def completed(self) -> Clock | None:
        with self._lock:
            return self._completed

    def complete(self, epoch: int, clock: Clock) -> None:
        with self._lock:
            check_epoch(self._epoch, epoch, f"the complete clock {clock}")
            self._completed = clock
            for processor, saved in self._saved.items():
                self._saved[processor] = {clock: saved[clock]} if clock in saved else {}

    def save(self, epoch: int, processor: str, clock: Clock, state: bytes) -> None:
        with self._lock:
            check_epoch(self._epoch, epoch, f"a snapshot of {processor}")
            self._saved.setdefault(processor, {})[clock] = epoch, state

    def clocks(self, processor: str) -> list[Clock]:
        with self._lock:
            return list(self._saved.get(processor, ()))

    def load(self, processor: str, clock: Clock) -> bytes:
        with self._lock:
            saved = self._saved.get(processor, {})
            if clock not in saved:
                raise SnapshotError(f"{processor} has no snapshot at {clock}")
            return saved[clock][1]

    def list(self) -> list[SnapshotListing]:
        with self._lock:
            return [
                SnapshotListing(processor, clock, epoch, len(state))
                for processor, saved in self._saved.items()
                for clock, (epoch, state) in saved.items()
            ]
