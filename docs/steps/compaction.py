"""Draws a compaction step by step. The drawings show which records of a small log stay, and why.

The log in this module is a real log of HMB. HMB's own classes `OffsetMap` and `Compaction` decide which records of each
batch stay. At the end, HMB's cleaner compacts the log, and the drawing shows the records that are left on disk.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from drawing import Drawing, Tone
from small_logs import NOW, append, records_of, roll, small_log
from step_by_step import Step

from hmb.records import Batch, Record, parse_batch
from hmb.storage.compaction.cleaner import Throttle, clean, cleanable
from hmb.storage.compaction.rule import Compaction, OffsetMap
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from hmb.units import DAY_MS

# A segment is a list of batches, and a batch is a list of pairs (key, value). The value None deletes the key.
Batches = list[list[tuple[str, str | None]]]
SEGMENTS: list[Batches] = [
    [[("ada", "Main"), ("bob", "Oak")], [("ada", "Elm"), ("eve", "Low")]],
    [[("bob", None), ("ada", "Hill")]],
    [[("eve", "Park")]],
]
LATER: Batches = [[("ada", "Lake")]]
CONFIG = LogConfig(cleanup_policy="compact", min_cleanable_dirty_ratio=0.0)
MEMORY = 1_000_000
WIDTH, HEIGHT, LEFT, CELL = 480, 330, 4, 58


class State(NamedTuple):
    """The contents of one drawing: the state of a compaction after one step.

    Compaction reads the log twice. The first pass stores the last offset of each key (`last`). The second pass
    selects the records that stay (`kept`). `current` is the batch that the pass is reading.
    """

    title: str
    records: list[Record]
    bases: list[int]  # base offsets of the segments
    current: list[int]  # offsets of the current batch
    dropped: list[int]
    last: dict[str, int]  # the map: the last offset of each key
    kept: list[Record]


def steps() -> list[Step]:
    """Return the steps of a first compaction, and a single step for a second compaction."""
    with small_log(CONFIG) as log:
        for batches in SEGMENTS:
            write_segment(log, batches)
        first = State("before the round", records_of(log), bases_of(log), [], [], {}, [])
        caption = (
            "A log has seven records in three segments. Compaction never touches the active segment, so the round "
            "works on offsets 0 to 5."
        )
        made = [Step(caption, draw(first)), *rounds(log, first)]
        log.close()
    return made


def write_segment(log: Log, batches: Batches) -> None:
    """Append batches to a new segment of the log."""
    if log.log_end_offset:
        roll(log)
    for batch in batches:
        append(log, *batch)


def bases_of(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def rounds(log: Log, before: State) -> list[Step]:
    """Compact the log twice. Return every step of the first compaction, but only the result of the second one."""
    work = cleanable(log, 0, NOW)
    if work is None:
        raise AssertionError("the log of the example cannot be compacted")
    batches = [
        parse_batch(segment.whole(position, header).view)
        for segment in work.segments
        for position, header in segment.batches(0, segment.size)
    ]
    map = OffsetMap(MEMORY, work.first_dirty, work.end)
    made, state = first_pass(map, batches, before)
    more, state = second_pass(map, batches, state)
    first_dirty = clean(log, work, max_memory=MEMORY, now=NOW, throttle=throttle())
    on_disk = records_of(log)
    if [record.offset for record in on_disk if record.offset < work.end] != [record.offset for record in state.kept]:
        raise AssertionError("the cleaner and `second_pass` keep different records")
    after = State("after the round", on_disk, bases_of(log), [], [], {}, [])
    caption = (
        f"The cleaner replaces the old segments. The log now has {len(on_disk)} records, and each has its old offset. "
        "Key eve has two records, because the newer one is in the active segment."
    )
    return [*made, *more, Step(caption, draw(after)), later_round(log, first_dirty)]


def throttle() -> Throttle:
    """Return a throttle that never slows the cleaner down."""
    return Throttle(float("inf"), threading.Event())


def first_pass(map: OffsetMap, batches: list[Batch], state: State) -> tuple[list[Step], State]:
    """Read the batches backwards, and store the last offset of each key in `map`.

    Return one step for each batch, and the state after the last step.
    """
    made = []
    for batch in reversed(batches):
        map.add(batch)
        new = {key_of(each): each.offset for each in batch.records() if map.is_last(each.offset)}
        state = state._replace(title="during the first pass", current=offsets_of(batch), last=state.last | new)
        found = " and ".join(f"{key} at offset {offset}" for key, offset in new.items())
        result = (
            f"It notes the last record of {found}." if new else "Its keys are known, so later records replace both."
        )
        first, *_, last = offsets_of(batch)
        caption = (
            f"The first pass reads the log backwards. It reads the batch with offsets {first} and {last}. {result}"
        )
        made.append(Step(caption, draw(state)))
    return made, state


def second_pass(map: OffsetMap, batches: list[Batch], state: State) -> tuple[list[Step], State]:
    """Read the batches in order, and select the records that stay.

    Return one step for each batch, and the state after the last step.
    """
    rule = Compaction(map, {}, NOW, CONFIG.delete_retention_ms)
    made = []
    for batch in batches:
        result = rule.apply(batch, is_aborted=False, drop_old_tombstones=False)
        kept = [] if result is None else list(parse_batch(result).records())
        dropped = [offset for offset in offsets_of(batch) if offset not in {record.offset for record in kept}]
        state = state._replace(
            title="during the second pass",
            current=offsets_of(batch),
            dropped=state.dropped + dropped,
            kept=state.kept + kept,
        )
        made.append(Step(caption_of(batch, kept, result), draw(state)))
    return made, state


def caption_of(batch: Batch, kept: list[Record], result: bytes | memoryview | None) -> str:
    """Return a caption that says which records of a batch the second pass keeps, and why.

    `kept` contains the records that stay. `result` is the batch with only these records, or None if no record
    stays.
    """
    first, *_, last = offsets_of(batch)
    reads = f"The second pass reads the batch with offsets {first} and {last}."
    if not kept:
        return f"{reads} The map has a later record for each of its keys, so the pass drops the whole batch."
    names = " and ".join(f"offset {record.offset}" for record in kept)
    of_keys = "record of its key" if len(kept) == 1 else "records of their keys"
    words = f"{reads} The pass keeps {names}, the last {of_keys}."
    horizon = parse_batch(result).delete_horizon if result is not None else None
    if horizon is not None:
        words += f" The null value is a tombstone: it stays for {(horizon - NOW) // DAY_MS * 24} hours more."
    return words


def later_round(log: Log, first_dirty: int) -> Step:
    """Compact the log again, 24 hours later, and return a step that shows the result.

    By this time the tombstone has expired, so the cleaner removes it.
    """
    write_segment(log, LATER)
    now = NOW + CONFIG.delete_retention_ms
    work = cleanable(log, first_dirty, now)
    if work is None:
        raise AssertionError("the second round of the example finds nothing to compact")
    before = {record.offset for record in records_of(log)}
    clean(log, work, max_memory=MEMORY, now=now, throttle=throttle())
    after = records_of(log)
    gone = " and ".join(str(offset) for offset in sorted(before - {record.offset for record in after}))
    caption = (
        f"A round 24 hours later finds a new active segment. It drops offsets {gone}: eve has a newer record, and the "
        "time of bob's tombstone has passed."
    )
    return Step(caption, draw(State("after a later round", after, bases_of(log), [], [], {}, [])))


def key_of(record: Record) -> str:
    return (record.key or b"").decode()


def offsets_of(batch: Batch) -> list[int]:
    return [record.offset for record in batch.records()]


def draw(state: State) -> Drawing:
    """Draw the log, the last offset of each key, and the records in the new segment."""
    drawing = Drawing(WIDTH, HEIGHT, in_words(state))
    drawing.text(LEFT, 20, f"the log, {state.title}", anchor="start", size=13)
    for record in state.records:
        is_dropped = record.offset in state.dropped
        tone: Tone = "violet" if record.offset in state.current else "amber"
        draw_record(drawing, record, 30, "gray" if is_dropped else tone, is_dropped=is_dropped)
    for base in state.bases:
        drawing.text(LEFT + CELL * base, 118, f"segment {base}", anchor="start", size=12, strong=True)
    if state.last:
        drawing.text(LEFT, 156, "the map: the last offset of each key", anchor="start", size=13)
        for number, (key, offset) in enumerate(sorted(state.last.items())):
            drawing.box(LEFT + 120 * number, 164, 112, 34, f"{key}: {offset}", tone="plain")
    if state.kept:
        drawing.text(LEFT, 230, "the new segment", anchor="start", size=13)
        for record in state.kept:
            draw_record(drawing, record, 240, "green", is_dropped=False)
    return drawing


def draw_record(drawing: Drawing, record: Record, y: float, tone: Tone, *, is_dropped: bool) -> None:
    """Draw a record: a box with its key and value (null for a tombstone), and its offset below the box."""
    x = LEFT + CELL * record.offset
    value = "null" if record.value is None else record.value.decode()
    drawing.box(x, y, CELL - 4, 50, key_of(record), value, tone=tone, dashed=is_dropped)
    drawing.text(x + CELL / 2 - 2, y + 68, str(record.offset), size=13)


def in_words(state: State) -> str:
    """Describe one step in words, for readers who cannot see its picture."""
    words = [f"The log {state.title}: {described(state.records)}; segments {state.bases}."]
    if state.current:
        words.append(f"The current batch has offsets {', '.join(map(str, state.current))}.")
    if state.last:
        words.append(f"The map: {', '.join(f'{key} {offset}' for key, offset in sorted(state.last.items()))}.")
    if state.dropped:
        words.append(f"Dropped: offsets {', '.join(map(str, state.dropped))}.")
    if state.kept:
        words.append(f"The new segment: {described(state.kept)}.")
    return " ".join(words)


def described(records: list[Record]) -> str:
    return ", ".join(
        f"{record.offset} {key_of(record)} {'null' if record.value is None else record.value.decode()}"
        for record in records
    )
