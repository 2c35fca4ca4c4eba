"""The sink: the node that writes tuples to the outside world. Each kind of sink has its own guarantee for crashes.

Only a sink changes the outside world, and a replay after a crash cannot undo these changes. The Hailstorm paper does
not solve this problem ("non-idempotent operations may have unexpected results", chapter 3.5).

Hailstorm has four kinds of sinks. Two kinds write each output at once. The other two kinds wait for the next complete
snapshot. A snapshot has a *clock*, which contains one offset for each partition. The snapshot includes exactly the
records below these offsets. When it is complete, no later replay begins below its clock:
    Sink                  calls write(tuple) at once. Each output is written at least once. After a crash, the outputs
                          since the last snapshot are written again. An output that is written again can be different:
                          for example, a running sum depends on the order in which tuples arrive.
    IdempotentSink        calls write(id, tuple) at once. After a crash, an output is written again with the same id. A
                          target that overwrites by id therefore holds each output once.
    HeldBackSink          calls write(tuples, clock) when a snapshot is complete. `tuples` are the new outputs of the
                          records below the clock of the snapshot. After a crash, the sink may repeat its last call,
                          with the same tuples and clock.
    TransactionalSink     writes these outputs and the clock in one transaction when a snapshot is complete. Each output
                          is written exactly once: after a crash, the sink reads the clock, and so knows which outputs
                          are written.

`Sink` and `IdempotentSink` write results within milliseconds. `HeldBackSink` and `TransactionalSink` hold their outputs
back until the next snapshot is complete. The snapshot of a sink contains the outputs that it holds back, because after
a crash, the bolts do not send outputs below the clock of the snapshot again.

A `TransactionalSink` writes to a *target*. The package `hmb.hailstorm.targets` has targets for SQLite, for any DB-API
connection, and for a topic.

**Errors.** If `write` or a target raises an exception, a restart helps only if the cause of the exception is temporary.
Hailstorm assumes that OSError, KafkaError, and a database's OperationalError and InterfaceError have a temporary cause.
The runner then starts the sink again, and the sink repeats the outputs since the last complete snapshot.

An exception whose cause is not temporary ends the topology. A mistake in an SQL statement also ends the topology,
because a restart cannot repair the statement. If `write` uses a library with other exceptions for outages, let `write`
catch these exceptions and raise OSError.

Source: Hailstorm, chapter 3.5, "Sinks".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hmb.client import TopicPartition
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.payload import TupleId

HeldTuple = tuple[TopicPartition, int, Any]  # an output that is not written yet: its partition, offset and tuple


class Target(Protocol):
    """An outside system, for example a database, that stores outputs and a clock in one transaction.

    The clock contains the offsets up to which the target has all outputs. Only one thread may use a target.
    """

    def open(self, topology: str, sink: str, start: Clock) -> Clock | None:
        """Return the clock of the last transaction. Prevent further writes by earlier runs of this sink instance.

        Return None if no transaction has committed. `topology` and `sink` are the names of the topology and of the sink
        instance. `start` is the clock at which the sink starts now.
        """

    def write(self, tuples: Sequence[Any], clock: Clock) -> None:
        """Write outputs to the target, and the offsets up to which it then has all outputs, in one transaction.

        `tuples` are the outputs. `clock` contains one offset for each partition that the topology reads. After the
        transaction, the target contains the outputs of all records below these offsets. Raises StaleEpochError if a
        newer run of the same sink instance has opened the target.
        """

    def close(self) -> None:
        """Close the connections to the outside system."""


@dataclass(frozen=True)
class Sink:
    """A sink that calls `write` with each tuple as it arrives."""

    write: Callable[[Any], object]


@dataclass(frozen=True)
class IdempotentSink:
    """A sink that calls `write` with each tuple as it arrives. The first argument is the identity of the tuple."""

    write: Callable[[TupleId, Any], object]


@dataclass(frozen=True)
class HeldBackSink:
    """A sink that holds its outputs back until a snapshot is complete, and then calls `write` with these outputs.

    The clock of a snapshot contains one offset for each partition. `write` receives this clock, and all new outputs of
    records below its offsets. If a snapshot has no new outputs, the sink does not call `write`.
    """

    write: Callable[[Sequence[Any], Clock], object]


@dataclass(frozen=True)
class TransactionalSink:
    """A sink that writes outputs and clock to a target, in one transaction for each complete snapshot.

    The function `target` makes the target. The thread of the processor calls this function, because many database
    connections can be used only by the thread that made them.
    """

    target: Callable[[], Target]


AnySink = Sink | IdempotentSink | HeldBackSink | TransactionalSink
