"""The drawing of the chapter on recovery: a damaged log before and after the start of the broker."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from drawing import Drawing, Tone
from small_logs import append, batches_of, quiet, small_log

from hmb.storage.config import LogConfig
from hmb.storage.log import Log

BATCHES, SYNCED, RECORDS = 8, 5, 2  # batches in the log, batches that were synced, records in each batch
ROTTEN, HOLE = 2, 6  # the batch in which a bit changes on disk, and the batch that never reaches the disk
WIDTH, LEFT, CELL = 512, 8, 62


class Block(NamedTuple):
    """The words in the box of a batch in the drawing, and the color of this box."""

    words: tuple[str, ...]
    tone: Tone


class Facts(NamedTuple):
    """A damaged log before the broker starts, and the repaired log after the start."""

    before: list[Block]
    after: list[Block]
    recovery_point: int
    end_offset: int
    kept: list[str]  # the names of the .cut files


def facts() -> Facts:
    """Return the content of a log with two damaged batches, before and after HMB repairs the log."""
    config = LogConfig()
    with small_log(config) as log:
        for number in range(BATCHES):
            append(log, *[(None, f"order {number}")] * RECORDS)
            if number + 1 == SYNCED:
                log.flush()
        recovery_point, segment = log.recovery_point, log.segments[0]
        places = batches_of(segment)
        damage(segment.path, places[ROTTEN][0] + 70, b"\xff")
        damage(segment.path, places[HOLE][0], bytes(places[HOLE][1].size))
        before = [block(number, batch.base_offset, batch.last_offset) for number, (_, batch) in enumerate(places)]
        with quiet():
            opened = Log(log.directory, config, recovery_point=recovery_point)
        after = [
            Block(("empty", f"{batch.base_offset}-{batch.last_offset}"), "gray")
            if not list(batch.records())
            else Block((f"{batch.base_offset}-{batch.last_offset}",), "amber")
            for _, batch in batches_of(opened.segments[0])
        ]
        kept = sorted(path.name.lstrip("0") for path in log.directory.glob("*.cut"))
        opened.close()
    return Facts(before, after, recovery_point, opened.log_end_offset, kept)


def damage(path: Path, position: int, data: bytes) -> None:
    """Overwrite bytes of a file."""
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def block(number: int, first: int, last: int) -> Block:
    """Return the box for batch `number` of the damaged log.

    The batch begins at offset `first` and ends at offset `last`.
    """
    if number == ROTTEN:
        return Block(("a wrong", "byte"), "red")
    if number == HOLE:
        return Block(("only", "zeros"), "red")
    return Block((f"{first}-{last}",), "amber")


def damaged_log() -> Drawing:
    """Draw the batches of a log before and after the broker repairs the log, and mark the recovery point."""
    made = facts()
    drawing = Drawing(
        WIDTH,
        318,
        f"A log of {len(made.before)} batches with the recovery point {made.recovery_point}. Batch {ROTTEN} has a "
        f"wrong byte, and batch {HOLE} consists of zeros. After the start, an empty batch replaces batch {ROTTEN}, and "
        f"the log ends at offset {made.end_offset}. The removed bytes are kept in the files {' and '.join(made.kept)}.",
    )
    point = LEFT + CELL * SYNCED - 2
    drawing.text(LEFT, 22, "the file after a power cut", anchor="start", strong=True)
    draw_blocks(drawing, 40, made.before)
    drawing.line((point, 32), (point, 210), tone="violet", dashed=True)
    drawing.text(point - 6, 116, "were on disk", anchor="end", size=13)
    drawing.text(point + 6, 116, "perhaps never on disk", anchor="start", size=13)
    drawing.text(point + 6, 228, f"recovery point {made.recovery_point}", tone="violet", size=13)
    drawing.text(LEFT, 142, "the file after the start", anchor="start", strong=True)
    draw_blocks(drawing, 156, made.after)
    end = LEFT + CELL * len(made.after)
    drawing.text(end + 4, 184, f"log end offset {made.end_offset}", anchor="start", size=13)
    cut = drawing.box(LEFT + CELL * HOLE, 262, CELL * (BATCHES - HOLE) - 4, 44, *made.kept, tone="gray", dashed=True)
    drawing.text(cut.x - 8, 290, "copies of the removed bytes", anchor="end", size=13)
    return drawing


def draw_blocks(drawing: Drawing, y: float, blocks: list[Block]) -> None:
    for number, each in enumerate(blocks):
        drawing.box(
            LEFT + CELL * number, y, CELL - 4, 48, *each.words, tone=each.tone, dashed=each.tone == "gray", size=13
        )
