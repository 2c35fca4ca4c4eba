"""Draws the progress of a topology that runs in Hailstorm's simulation, with two crashes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from drawing import Drawing

from hmb.client import ConsumerRecord
from hmb.hailstorm import Bolt, Clock, Sink, Spout, Sum, Topology
from hmb.hailstorm.processors.bolts import BoltMachine
from hmb.hailstorm.processors.spouts import SpoutMachine
from hmb.hailstorm.simulation import Simulation
from hmb.records.record import TimestampType

WORDS, SEED = ("sun", "fog", "rain"), 43
LEFT, TOP, WIDTH, HEIGHT = 60, 30, 620, 230  # pixels: the area of the curves


class ObservedSimulation(Simulation):
    """A simulation that records the progress of the spouts, the bolts and the snapshots after each step."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        # Two spouts read one partition each. A spout's position is the next offset to read. Each simulation step
        # appends a number to `read`, `marked` and `completed`: an offset of partition 0 plus an offset of partition 1.
        self.read: list[int] = []  # the sum of the positions of all spouts
        self.marked: list[int] = []  # the sum of the offsets in the low water mark of the slowest bolt
        self.completed: list[int] = []  # the sum of the offsets in the clock of the newest complete snapshot
        self.crashed: list[int] = []  # the numbers of the steps in which a processor crashed
        super().__init__(*arguments, **options)
        self._speeds = defaultdict(lambda: 1.0)  # No processor is slower than the others, so the curves are readable.

    def _actions(self) -> Any:
        machines = [each.machine for each in self._participants.values()]
        self.read.append(sum(each.position for each in machines if isinstance(each, SpoutMachine)))
        marks = [sum(each.marks.clock.values()) for each in machines if isinstance(each, BoltMachine)]
        self.marked.append(min(marks, default=0))
        self.completed.append(sum((self.store.completed() or Clock()).values()))
        return super()._actions()

    def _crash(self) -> None:
        self.crashed.append(len(self.read))
        super()._crash()


def topology() -> Topology:
    counting = Topology("counting")
    counting.spout("words", Spout("words"))
    counting.bolt("count", Bolt.keyed(Sum(), str, lambda word: 1), after="words", group=str, parallelism=2)
    counting.sink("console", Sink(lambda item: None), after="count")
    return counting


def records(count: int = 300) -> dict[str, list[list[ConsumerRecord]]]:
    """Return the records of a topic with two partitions. Each partition has `count` records with one word each."""
    kind = TimestampType.CREATE_TIME
    return {
        "words": [
            [ConsumerRecord("words", number, n, 0, kind, None, WORDS[n % 3].encode(), ()) for n in range(count)]
            for number in range(2)
        ]
    }


def progress() -> Drawing:
    """Draw three curves, which show the progress of a simulated run with two crashes.

    - The first curve shows how many records the spouts have read from the input topic.
    - The second curve shows how many records the slowest bolt (a processing step) has finished. The bolt's low
      water mark contains one offset for each partition. For example, the offsets 3 and 2 mean 5 finished records.
    - The third curve shows how many records the newest complete snapshot includes. After a crash, the spouts
      continue with the next records after the snapshot.
    """
    simulation = ObservedSimulation(topology(), records(), SEED, crashes=2, crash_rate=0.0015)
    result = simulation.run()
    most, steps = max(simulation.read), len(simulation.read)
    drawing = Drawing(
        760,
        TOP + HEIGHT + 60,
        f"A simulated run of {steps} steps with {result.crashes} crashes and {result.snapshots} snapshots. After a "
        "crash the spouts and the low water mark go back to the newest complete clock, which never goes back.",
    )
    drawing.line((LEFT, TOP), (LEFT, TOP + HEIGHT), (LEFT + WIDTH, TOP + HEIGHT))
    drawing.text(LEFT - 6, TOP + 8, str(most), anchor="end", size=13)
    drawing.text(LEFT - 6, TOP + HEIGHT, "0", anchor="end", size=13)
    drawing.text(LEFT + WIDTH, TOP + HEIGHT + 18, f"{steps} steps", anchor="end", size=13)
    for values, tone in ((simulation.read, "amber"), (simulation.marked, "violet"), (simulation.completed, "green")):
        points = [
            (LEFT + WIDTH * step / steps, TOP + HEIGHT * (1 - value / most))
            for step, value in enumerate(values)
            if step == 0 or value != values[step - 1] or (step + 1 < steps and values[step + 1] != value)
        ]
        drawing.line(*points, (LEFT + WIDTH, TOP + HEIGHT * (1 - values[-1] / most)), tone=tone)  # type: ignore[arg-type]
    for step in simulation.crashed:
        drawing.cross(LEFT + WIDTH * step / steps, TOP + HEIGHT)
    labels = (60, "read by spouts", "amber"), (250, "low water mark", "violet"), (470, "newest complete clock", "green")
    for x, label, tone in labels:
        drawing.line((x, TOP + HEIGHT + 44), (x + 24, TOP + HEIGHT + 44), tone=tone)  # type: ignore[arg-type]
        drawing.text(x + 30, TOP + HEIGHT + 48, label, anchor="start", size=13)
    return drawing
