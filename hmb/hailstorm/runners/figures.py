"""Collects numbers about a processor for the live display, for example how many tuples it has received."""

from __future__ import annotations

from typing import Any

from hmb.hailstorm.processors.bolts import BoltMachine
from hmb.hailstorm.processors.participant import Machine
from hmb.hailstorm.processors.sinks import SinkMachine
from hmb.hailstorm.processors.spouts import SpoutMachine


def figures_of(machine: Machine | None, queued: int) -> dict[str, Any]:
    """Return the figures of a processor, which the live display of a topology shows.

    tuples     the number of tuples that a spout has sent, or that another processor has received, in this epoch
    position   the offset that a spout reads next
    mark       the low water mark of a bolt or a sink, as a list of (topic, partition, offset)
    size       the number of entries in a bolt's state, or of outputs that a sink holds back
    late       the number of records or tuples that the processor dropped because they were late
    dead       the number of dead letters: records that a spout could not convert
    refused    the number of tuples that the processor refused because they belong to an older epoch
    queued     the number of batches of tuples that wait in the processor's mailbox
    """
    if isinstance(machine, SpoutMachine):
        left_out = {"late": machine.late_count, "dead": machine.dead_count}
        return {"tuples": machine.sent, "position": machine.position, **left_out}
    if isinstance(machine, BoltMachine):
        return {
            "tuples": machine.received,
            "mark": machine.marks.clock.to_value(),
            "size": machine.bolt.monoid.size(machine.state.merged()),
            "late": machine.state.late,
            "refused": machine.refused,
            "queued": queued,
        }
    if isinstance(machine, SinkMachine):
        return {
            "tuples": machine.received,
            "mark": machine.marks.clock.to_value(),
            "size": len(machine.held),
            "refused": machine.refused,
            "queued": queued,
        }
    return {}
