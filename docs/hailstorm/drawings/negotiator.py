"""Draws the state machine of the negotiator, the part of Hailstorm that takes snapshots and recovers a topology.

The drawing is made from the table `STEPS`. The negotiator uses the same table to find its next step, so the drawing
always agrees with the code.
"""

from __future__ import annotations

from drawing import Drawing

from hmb.hailstorm.master import MasterPhase
from hmb.hailstorm.negotiator.steps import STEPS, Step

WIDTH, HEIGHT, GAP, LEFT = 190, 36, 40, 90  # pixels
LEGEND = 330  # pixels from the left edge
RECOVERING = (MasterPhase.DISCONNECTED, MasterPhase.INITIALIZE, MasterPhase.ENDED)


def plain_steps() -> list[Step]:
    """Return the steps (changes of phase) that happen in a run without failures, in the order of the table `STEPS`."""
    return [STEPS[0], *(step for step in STEPS if step.after not in RECOVERING)]


def machine() -> Drawing:
    """Draw each phase as a box, and each change of phase as a numbered arrow.

    The legend names the event of each arrow.
    """
    phases = list(MasterPhase)
    steps = plain_steps()
    height = len(phases) * (HEIGHT + GAP)
    drawing = Drawing(
        900, height, "The state machine of the negotiator: " + ", ".join(
            f"step {n} from {step.before.value} to {step.after.value}" for n, step in enumerate(steps, 1)
        ) + ".",
    )  # fmt: skip
    boxes = [
        drawing.box(LEFT, row * (HEIGHT + GAP) + 4, WIDTH, HEIGHT, phase.value, tone="amber")
        for row, phase in enumerate(phases)
    ]
    at = dict(zip(phases, boxes, strict=True))
    lanes = 0
    seen: set[tuple[MasterPhase, MasterPhase]] = set()
    for step in steps:
        one, other = at[step.before], at[step.after]
        label = ", ".join(str(n) for n, each in enumerate(steps, 1) if each[0::2] == step[0::2])
        if (step.before, step.after) in seen:
            continue
        seen.add((step.before, step.after))
        if phases.index(step.after) - phases.index(step.before) == 1:
            drawing.arrow(one.bottom, (other.top.x, other.top.y - 1))
            drawing.text(one.bottom.x + 8, (one.bottom.y + other.top.y) / 2 + 5, label, anchor="start", size=13)
        else:
            lanes += 1
            x = LEFT - 24 * lanes
            start, end = one.left.y - 6, other.left.y + 6
            drawing.arrow((one.left.x, start), (x, start), (x, end), (other.left.x, end))
            drawing.text(x - 4, (one.left.y + other.left.y) / 2 + 5, label, anchor="end", size=13)
    _legend(drawing, steps)
    return drawing


def _legend(drawing: Drawing, steps: list[Step]) -> None:
    """Write the legend, a list of the events that change the phase of a topology.

    The first part of the legend names the event of each numbered arrow. The second part lists the events of the
    steps without an arrow, such as the failure of a processor.
    """
    y = 24.0
    for number, step in enumerate(steps, 1):
        drawing.text(LEGEND, y, f"{number}  {step.because}", anchor="start", size=12.5)
        y += 21
    y += 16
    heading = "The other steps interrupt the loop. To Initialize, in a new epoch:"
    drawing.text(LEGEND, y, heading, anchor="start", size=12.5, strong=True)
    for target in (MasterPhase.INITIALIZE, MasterPhase.DISCONNECTED, MasterPhase.ENDED):
        if target is not MasterPhase.INITIALIZE:
            drawing.text(LEGEND, y + 27, f"To {target.value}:", anchor="start", size=12.5, strong=True)
            y += 27
        events = dict.fromkeys(step.because for step in STEPS if step.after is target and step not in steps)
        for event in events:
            y += 21
            drawing.text(LEGEND, y, event, anchor="start", size=12.5)
