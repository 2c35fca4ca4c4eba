"""Shows in steps what happens to a partition on three brokers when its leader crashes.

Lab 11 contains a simulation of a partition. This module runs the simulation twice, with acks=all and with acks=1. The
simulation uses the functions of the lab's solution.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

from drawing import Drawing, Tone
from step_by_step import Step

import hmb.labs
from hmb.labs.replicated_partition import ReplicatedPartition, Stored

LAB = Path(hmb.labs.__file__).parent / "11_replication"
WIDTH, HEIGHT, LEFT, CELL, ROW = 480, 350, 124, 88, 62


class Act(NamedTuple):
    """A method call that changes the simulation, and the caption of the drawing that follows the call.

    If the caption is empty, no drawing follows. The effects of the call then appear in the next drawing.
    """

    method: str
    argument: str
    caption: str = ""


ACTS = (
    Act("produce", "order 1"),
    Act("fetch", "B"),
    Act(
        "fetch", "C",
        "Broker A is the leader. Both followers have copied order 1, so the high watermark is {high_watermark} and the "
        "order is committed.",
    ),
    Act("produce", "order 2", "A producer sends order 2, and leader A appends it. With acks=1 the leader answers now."),
    Act("fetch", "B", "Follower B copies order 2. The high watermark stays at {high_watermark}, because C lacks it."),
    Act("produce", "order 3", "A producer sends order 3. Only leader A has it, and acknowledges it with acks=1."),
    Act(
        "crash", "A",
        "Broker A crashes. Broker {leader} is in sync, so it becomes the leader, in leader epoch {epoch}. Only broker "
        "A has order 3: with acks=1, an acknowledged order is lost.",
    ),
    Act("fetch", "C", "Follower C copies order 2 from the new leader, broker {leader}."),
    Act("produce", "order 4", "A producer sends order 4 to leader {leader}. It gets offset 2 and epoch {epoch}."),
    Act(
        "fetch", "C",
        "Follower C copies order 4. Broker A still counts as in sync, so the high watermark stays at {high_watermark}.",
    ),
    Act("fetch", "C"),
    Act("fetch", "C"),
    Act(
        "fetch", "C",
        "Broker A was away for too long, and leaves the in-sync replicas. The high watermark grows to "
        "{high_watermark}: orders 2 and 4 are committed, and the leader acknowledges order 4 with acks=all.",
    ),
    Act(
        "restart", "A",
        "Broker A restarts as a follower. At offset 2 it has order 3 of epoch 0, but the leader has "
        "order 4 of epoch 1.",
    ),
    Act(
        "fetch", "A",
        "Broker A truncates its log at offset 2, where epoch 0 ended at the new leader. It copies order 4, and is "
        "in sync again. With acks=all, no acknowledged order is lost.",
    ),
)  # fmt: skip


def steps() -> list[Step]:
    """Return a list with one step for each `Act` that has a caption.

    Each step consists of a drawing and its caption.
    """
    rules = rules_of_lab()
    safe, fast = ReplicatedPartition(rules, "all"), ReplicatedPartition(rules, "1")
    made = []
    for act in ACTS:
        for partition in (safe, fast):
            getattr(partition, act.method)(act.argument)
        if act.caption:
            facts = {"high_watermark": safe.high_watermark, "leader": safe.leader, "epoch": safe.epoch}
            made.append(Step(act.caption.format(**facts), draw(act, safe, fast)))
    return made


def rules_of_lab() -> Any:
    """Return the solution of lab 11: a module whose functions decide, for example, which replica becomes the leader."""
    spec = importlib.util.spec_from_file_location("rules_of_lab_11", LAB / "solution.py")
    if spec is None or spec.loader is None:
        raise AssertionError(f"{LAB} has no solution.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw(act: Act, safe: ReplicatedPartition, fast: ReplicatedPartition) -> Drawing:
    """Draw three logs, the high watermark, and the records that the leader has acknowledged.

    The drawing shows two simulations: `safe` with acks=all, and `fast` with acks=1. From `safe`, it shows the
    logs, the high watermark and the acknowledged records. From `fast`, it shows the acknowledged records.
    """
    drawing = Drawing(WIDTH, HEIGHT, in_words(act, safe, fast))
    for row, name in enumerate(safe.replicas):
        draw_replica(drawing, safe, name, 40 + ROW * row)
    x = LEFT + CELL * safe.high_watermark
    drawing.line((x, 30), (x, 36 + ROW * 3), tone="violet", dashed=True)
    drawing.text(x, 22, f"high watermark {safe.high_watermark}", tone="violet")
    drawing.text(LEFT, 248, "below each record: offset, leader epoch", anchor="start", size=13)
    drawing.text(10, 282, "acknowledged to producers", anchor="start", size=13)
    for y, acks, partition in ((308, "all", safe), (336, "1", fast)):
        orders = ", ".join(each for each in partition.acknowledged if each not in partition.lost)
        drawing.text(10, y, f"acks={acks}: {orders}", anchor="start")
        if partition.lost:
            drawing.text(WIDTH - 10, y, f"lost: {', '.join(partition.lost)}", anchor="end", tone="red", strong=True)
    return drawing


def draw_replica(drawing: Drawing, partition: ReplicatedPartition, name: str, y: float) -> None:
    """Draw the log of one replica, and its role: leader, follower, or crashed."""
    is_live = name in partition.live
    part = "crashed" if not is_live else "leader" if name == partition.leader else "follower"
    tone: Tone = "red" if not is_live else "violet" if part == "leader" else "amber"
    drawing.box(6, y, 110, 34, f"{name}: {part}", tone=tone, dashed=not is_live)
    for offset, record in enumerate(partition.logs[name]):
        x = LEFT + CELL * offset
        tone = tone_of(partition, offset, record)
        drawing.box(x + 3, y, CELL - 6, 34, record.value, tone=tone, dashed=not is_live)
        drawing.text(x + CELL / 2, y + 50, f"{offset}, epoch {record.epoch}", size=13)
    state = "in sync" if name in partition.isr else "not in sync"
    drawing.text(WIDTH - 10, y + 22, state, anchor="end", size=13, tone="plain" if state == "in sync" else "red")


def tone_of(partition: ReplicatedPartition, offset: int, record: Stored) -> Tone:
    """Return the tone (the color) of a record.

    The tone shows whether the record is committed, and whether it differs from the leader's record at the same offset.
    """
    if partition.leader is not None:
        at_leader = partition.logs[partition.leader][offset : offset + 1]
        if at_leader and at_leader != [record]:
            return "red"
    return "amber" if offset < partition.high_watermark else "plain"


def in_words(act: Act, safe: ReplicatedPartition, fast: ReplicatedPartition) -> str:
    """Describe one step in words, for readers who cannot see its picture."""
    doing = {
        "produce": "The leader appends",
        "fetch": "A replica fetches:",
        "crash": "A crash of",
        "restart": "Start of",
    }
    logs = "; ".join(f"{name} has {', '.join(each.value for each in log)}" for name, log in safe.logs.items())
    lost = f" With acks=1, {', '.join(fast.lost)} is lost." if fast.lost else ""
    return (
        f"{doing[act.method]} {act.argument}. Leader {safe.leader}, in sync {', '.join(safe.isr)}, high watermark "
        f"{safe.high_watermark}. {logs}.{lost}"
    )
