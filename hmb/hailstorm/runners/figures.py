"""The figures in a processor's report, for displays: progress, sizes, counts."""

from __future__ import annotations

from typing import Any

from hmb.hailstorm.processors.bolts import BoltMachine
from hmb.hailstorm.processors.participant import Machine
from hmb.hailstorm.processors.sinks import SinkMachine
from hmb.hailstorm.processors.spouts import SpoutMachine


def figures_of(machine: Machine | None, queued: int) -> dict[str, Any]:
    """Return numbers about a processor, for example its queue, which the live display of a topology shows.

    tuples     number of tuples that it has sent (a spout) or received since the epoch began
    position   a spout's next offset
    mark       the low water mark of a bolt or a sink, as the codec stores a clock
    size       entries of a bolt's state, or outputs that a sink holds back
    late       number of tuples or records that were dropped because they were late
    refused    number of tuples of an older epoch
    queued     number of payloads in the mailbox
    """
    if isinstance(machine, SpoutMachine):
        return {"tuples": machine.sent, "position": machine.position, "late": machine.late_count}
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
