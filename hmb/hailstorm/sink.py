"""The sink: the node that writes tuples to the outside world, and the promise of each kind of sink for crashes.

Only a sink changes the outside world, and a replay cannot undo these changes. The paper leaves this open
("non-idempotent operations may have unexpected results", chapter 3.5). Hailstorm has four kinds of sinks:

    Sink                  calls write(tuple) at once. Each output is written at least once. After a crash the outputs of
                          tuples above the last snapshot are written again, and may have other running values.
    IdempotentSink        calls write(id, tuple) at once. As Sink, but an output has the same id each time, so a
                          target that overwrites by id holds each output once.
    HeldBackSink          calls write(tuples, clock) when a snapshot is complete, with outputs that no replay can
                          produce again. A crash before the next snapshot repeats the last call, tuples and clock.
    TransactionalSink     commits outputs and clock in one transaction of the target when a snapshot is complete.
                          Exactly once: the clock shows a restarted sink which outputs the target already has.

`Sink` and `IdempotentSink` show results within milliseconds, `HeldBackSink` and `TransactionalSink` when the next
snapshot is complete. A held-back output is part of the snapshot of its sink, because the bolts do not send it again
after a crash.

`TransactionalSink` writes to a *target*. The package `hmb.hailstorm.targets` has targets for SQLite, for any DB-API
connection, and for a topic.

Source: Hailstorm, chapter 3.5, "Sinks".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hmb.client import TopicPartition
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.payload import TupleId

HeldTuple = tuple[TopicPartition, int, Any]  # partition, offset and tuple of an output that is not written yet


class Target(Protocol):
    """An outside system that stores outputs and a clock in one transaction. One thread uses it."""

    def open(self, sink: str, epoch: int) -> Clock | None:
        """Fence older epochs of this sink instance, and return the clock of its last transaction, or None."""

    def write(self, tuples: Sequence[Any], clock: Clock) -> None:
        """Commit the outputs and the clock in one transaction.

        Raises StaleEpochError if a newer epoch has opened the target.
        """

    def close(self) -> None:
        """Release connections."""


@dataclass(frozen=True)
class Sink:
    """Calls `write` with each tuple as it arrives."""

    write: Callable[[Any], object]


@dataclass(frozen=True)
class IdempotentSink:
    """Calls `write` with the identity of each tuple and the tuple, as it arrives."""

    write: Callable[[TupleId, Any], object]


@dataclass(frozen=True)
class HeldBackSink:
    """Calls `write` once for each complete snapshot, with all outputs up to it, in order."""

    write: Callable[[Sequence[Any], Clock], object]


@dataclass(frozen=True)
class TransactionalSink:
    """Writes outputs and clock to a target in one transaction for each complete snapshot.

    `target` makes the target. It is called in the processor's thread, because connections often belong to one thread.
    """

    target: Callable[[], Target]


AnySink = Sink | IdempotentSink | HeldBackSink | TransactionalSink
