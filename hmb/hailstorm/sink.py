"""The sink: the node that writes tuples to the outside world.

The four kinds of sinks differ in what they guarantee after a crash. For example, some kinds may write an output
twice.

Only a sink changes the outside world, and a replay after a crash cannot undo these changes. The Hailstorm paper does
not solve this problem ("non-idempotent operations may have unexpected results", chapter 3.5).

A snapshot has a *clock*, which contains one offset for each partition. The snapshot includes exactly the
records below these offsets. After a crash, Hailstorm replays only records that the last complete snapshot does
not include.

An *output* is a tuple that a sink writes. Hailstorm has four kinds of sinks:
    Sink                  calls write(tuple) when a tuple arrives. It writes each output at least once: after a crash,
                          it writes all outputs since the last snapshot again. An output can then have another value.
                          For example, a running sum differs if the tuples arrive in another order.
    IdempotentSink        calls write(id, tuple) when a tuple arrives. After a crash, it writes an output again with
                          the same id, so the target can overwrite the old output.
    HeldBackSink          calls write(tuples, clock) when a snapshot is complete. `tuples` are the outputs between the
                          previous snapshot and this one. After a crash, the sink may repeat its last call, with the
                          same arguments.
    TransactionalSink     writes the new outputs and the clock in one transaction when a snapshot is complete. It writes
                          each output exactly once: after a crash, the clock in the target shows which outputs the
                          target already contains.

`Sink` and `IdempotentSink` write results within milliseconds. `HeldBackSink` and `TransactionalSink` hold their
outputs back until the next snapshot is complete. These two sinks also save their outputs in the snapshot. After
a crash, the sink loads the outputs from the snapshot, because the bolts do not send them again.

A `TransactionalSink` writes to a *target*. The package `hmb.hailstorm.targets` has targets for SQLite, for any DB-API
connection, and for a topic.

**Errors.** If `write` or a target raises an exception, the cause may be temporary, for example a database
restart. Hailstorm assumes a temporary cause for OSError and KafkaError, and for a database's OperationalError
and InterfaceError. In these cases, Hailstorm starts the sink again, and the sink continues from the last
complete snapshot.

An exception whose cause does not seem temporary ends the topology. For example, SQLite raises OperationalError
if a statement contains a mistake, and a restart cannot repair the statement. If a library has its own
exceptions for temporary failures, convert these exceptions to OSError in `write`.

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
    """Stores outputs and a clock in one transaction, in a system outside Hailstorm, such as a database.

    The clock contains one offset for each partition that the topology reads. The target contains all
    outputs that come from records below these offsets. Use each target in only one thread.
    """

    def open(self, topology: str, sink: str, start: Clock) -> Clock | None:
        """Open the target for a new run of a sink. Return the clock of the last committed transaction, or None.

        A *clock* contains one offset for each partition that the topology reads. `start` is the clock at which the
        topology begins to read. `topology` and `sink` are the names of the topology and of the sink instance.

        After this call, earlier runs of the same sink instance can no longer write to the target.
        """

    def write(self, tuples: Sequence[Any], clock: Clock) -> None:
        """Write outputs and a clock to the target, in one transaction.

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
    """A sink that calls `write` with an id and a tuple as soon as the tuple arrives.

    After a crash, a tuple can arrive again, and it then has the same id. `write` can therefore overwrite the
    earlier output, instead of adding the same output twice.
    """

    write: Callable[[TupleId, Any], object]


@dataclass(frozen=True)
class HeldBackSink:
    """A sink that holds its outputs back until a snapshot is complete, and then passes them to `write`.

    `write` receives the new outputs and the clock of the snapshot. The clock contains one offset for each
    partition, and the outputs come from records below these offsets. If a snapshot has no new outputs, the sink
    does not call `write`.
    """

    write: Callable[[Sequence[Any], Clock], object]


@dataclass(frozen=True)
class TransactionalSink:
    """A sink that writes its outputs to a target, in one transaction for each complete snapshot.

    The transaction contains the new outputs and the clock of the snapshot: one offset for each partition.

    The function `target` returns a target, for example for a database. Hailstorm calls this function in the thread
    that uses the target, because many database connections work only in the thread that created them.
    """

    target: Callable[[], Target]


AnySink = Sink | IdempotentSink | HeldBackSink | TransactionalSink
