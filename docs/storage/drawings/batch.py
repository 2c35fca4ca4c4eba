"""The drawings of the chapter on the batch and the record: the bytes of a batch that kafka-python has sent."""

from __future__ import annotations

import re
from pathlib import Path

from byte_fields import ROW, draw_fields, rows_of
from drawing import Drawing, Tone

from hmb.protocol.annotate import Line
from hmb.protocol.connection import ServerConnection
from hmb.records import RecordBatch
from hmb.records.annotate import annotate_batch
from hmb.records.batch import CRC_START, RECORD_BATCH_OVERHEAD
from hmb.records.varint import VARINTS

GOLDEN = Path(__file__).parents[3] / "tests" / "golden" / "produce_v9_kafka-python-2.8.txt"
ROW_OF_BYTES = re.compile(r"^[0-9a-f]{6}  ((?:[0-9a-f]{2} ?)+)", re.MULTILINE)
WIDTH = 496
WRITTEN_BY_BROKER = ("base_offset", "partition_leader_epoch")
NUMBER = 100  # the number in the drawing of a varint


def recorded_batch() -> RecordBatch:
    """Return the record batch in a Produce request of kafka-python. `tests/golden` contains the request."""
    request = GOLDEN.read_text().partition("== request: bytes\n")[2].partition("== request: message")[0]
    frame = bytes.fromhex("".join(ROW_OF_BYTES.findall(request)))
    _, message = ServerConnection().receive(memoryview(frame)[4:])
    return RecordBatch.parse(message.topic_data[0].partition_data[0].records)


def lines() -> list[Line]:
    """Return the fields of the batch, in the order of their bytes."""
    return [line for line, _ in annotate_batch(recorded_batch(), 0)]


def parts() -> Drawing:
    """Draw the parts of the batch: the header and its records."""
    batch = recorded_batch()
    sizes = [("header", RECORD_BATCH_OVERHEAD)]
    for number in range(batch.records_count):
        size = sum(len(line.data) for line in lines() if line.path.startswith(f"records[{number}]."))
        sizes.append((f"record {number}", size))
    words = ", ".join(f"{name} with {size} bytes" for name, size in sizes)
    drawing = Drawing(WIDTH, 92, f"A record batch of {batch.size} bytes has one header and then its records: {words}.")
    x, scale = 8.0, (WIDTH - 16) / batch.size
    for name, size in sizes:
        tone: Tone = "amber" if name == "header" else "blue"
        box = drawing.box(x, 12, size * scale, 42, name, tone=tone)
        drawing.text(box.bottom.x, 76, f"{size} bytes", size=13)
        x += size * scale
    return drawing


def header() -> Drawing:
    """Draw the header of the batch, field by field."""
    found = [line for line in lines() if not line.path.startswith("records[")]
    top, height = 44.0, 50 + ROW * rows_of(found)
    words = "; ".join(f"{line.path}, {len(line.data)} bytes at position {line.offset}" for line in found)
    drawing = Drawing(WIDTH, height, f"The header of a record batch, field by field: {words}.")
    drawing.text(8, 16, "amber: the broker writes these fields", anchor="start", size=13)
    drawing.text(8, 34, "violet line: the CRC covers these bytes", anchor="start", size=13)
    boxes = draw_fields(drawing, found, top, lambda path: "amber" if path in WRITTEN_BY_BROKER else "blue")
    covered = next(box for box, line in zip(boxes, found, strict=True) if line.offset == CRC_START)
    drawing.line((4, covered.y), (4, height - 6), tone="violet")
    drawing.line((5, covered.y), (5, height - 6), tone="violet")
    return drawing


def record() -> Drawing:
    """Draw the second record of the batch, field by field."""
    found = [line for line in lines() if line.path.startswith("records[1].")]
    words = "; ".join(f"{line.path.partition('.')[2]} in {len(line.data)} bytes" for line in found)
    drawing = Drawing(WIDTH, 8 + ROW * rows_of(found), f"The second record of the batch, field by field: {words}.")
    draw_fields(drawing, found, 4, lambda path: "violet" if path.endswith("_delta") else "blue")
    return drawing


def varint() -> Drawing:
    """Draw how a number becomes a varint: the zigzag rule, groups of seven bits, and the bytes."""
    encoded = VARINTS[NUMBER]
    zigzag = 2 * NUMBER
    groups = [byte & 0x7F for byte in encoded]
    if sum(group << 7 * number for number, group in enumerate(groups)) != zigzag:
        raise AssertionError("the zigzag rule of the drawing differs from the rule of the encoder")
    drawing = Drawing(
        WIDTH,
        190,
        f"The number {NUMBER} becomes {zigzag} by the zigzag rule. Its bits are divided into groups of seven, the "
        f"lowest group first. The varint has the bytes {encoded.hex(' ')}.",
    )
    drawing.text(8, 30, "number", anchor="start", size=13)
    drawing.box(150, 10, 60, 30, str(NUMBER), tone="blue")
    drawing.arrow((214, 25), (286, 25))
    drawing.text(250, 18, "zigzag", size=13)
    drawing.box(290, 10, 60, 30, str(zigzag), tone="blue")
    drawing.text(8, 84, "groups of 7 bits", anchor="start", size=13)
    drawing.text(8, 142, "bytes", anchor="start", size=13)
    for number, (group, byte) in enumerate(zip(groups, encoded, strict=True)):
        x = 150 + 150 * number
        bits = drawing.box(x, 64, 130, 30, f"{group:07b}", tone="violet")
        flag = byte >> 7
        drawing.box(x, 122, 22, 30, str(flag), tone="red" if flag else "gray")
        drawing.box(x + 22, 122, 108, 30, f"{group:07b}", tone="violet")
        drawing.arrow(bits.bottom, (bits.bottom.x, 121))
        drawing.text(bits.bottom.x, 174, f"{byte:02x}, {'more follow' if flag else 'last byte'}", size=13)
    return drawing
