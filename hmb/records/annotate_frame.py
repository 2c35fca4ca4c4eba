"""Shows all bytes of a frame: the bytes of the message, and of the record batches inside the message.

A *frame* is one message with its size before it. For each field of a frame, `annotate_frame` yields one line: the
position, the bytes, and the name and the value of the field. For example, a frame that contains a record batch has
these lines, among others:
    000000  00 00 00 d6                                      size = 214
    ...
    00004b  00 00 00 00 00 00 00 00                          ...records.batches[0].base_offset = 0

The module `protocol.annotate` yields only one line for all records of a partition. In place of this line,
`annotate_frame` yields many lines: for each record batch, it yields the lines of the module `records.annotate`.

Each byte of a frame is in exactly one line, even if the frame is damaged. For each problem, the functions of
this module add a text to the list `problems`. After a batch with a wrong CRC or damaged records, they continue
with the next batch.

If bytes do not belong to a field, their line contains one of these words instead of the field's name:
- `unreadable`: the bytes cannot be decoded.
- `cut`: the bytes are at the end of an incomplete batch.
- `left`: the bytes come after the end of the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hmb.protocol.annotate import Line
from hmb.protocol.errors import KafkaError, ProtocolError
from hmb.records.annotate import annotate_batch, annotate_cut_header
from hmb.records.batch import MAGIC, RecordBatch
from hmb.records.reading import HEADER_PEEK, Batch, parse_batch

Lines = Iterator[tuple[Line, bool]]  # a line, and whether it shows decompressed bytes


def annotate_frame(message: Iterable[Line], wire: memoryview, problems: list[str], *, may_be_cut: bool) -> Lines:
    """Yield the lines of a frame, with one line for each field of the records.

    `message` yields the lines of the message, where all records of a partition share one line. The function
    replaces this line. `wire` contains all bytes of the frame. For each problem, the function adds a text to
    `problems`.

    The records in a Fetch response can end inside a batch. If `may_be_cut` is true, an incomplete batch is not a
    problem.
    """
    end, rest = 0, "left"
    found = len(problems)
    try:
        for line in message:
            end = line.offset + len(line.data)
            if line.kind == "records":
                yield from annotate_records(line.data, line.offset, f"{line.path}.", problems, may_be_cut=may_be_cut)
            else:
                yield line, False
    except ProtocolError as error:
        problems.insert(found, str(error))  # This problem caused the others, so it comes first.
        rest = "unreadable"
    yield from _bytes(rest, wire[end:], end)


def annotate_records(
    buffer: memoryview, position: int, path: str, problems: list[str], *, may_be_cut: bool = False
) -> Lines:
    """Yield the lines of all batches (format 2) and messages (formats 0 and 1) in a buffer.

    `position` is the position of the buffer in its frame or file.
    """
    start = number = 0
    while start < len(buffer):
        try:
            batch = parse_batch(buffer, start)
        except KafkaError as error:
            if not may_be_cut:
                problems.append(f"byte {position + start}: {error.message}")
            if len(buffer) - start < HEADER_PEEK:
                for line in annotate_cut_header(buffer[start:], position + start):
                    yield line._replace(path=f"{path}batches[{number}].{line.path}"), False
                    start += len(line.data)
            yield from _bytes(f"{path}unreadable", buffer[start:], position + start)
            return
        prefix = f"{path}{'batches' if batch.magic == MAGIC else 'messages'}[{number}]."
        yield from _batch(batch, position + start, prefix, problems, may_be_cut=may_be_cut)
        start, number = start + batch.size, number + 1


def _batch(batch: Batch, position: int, prefix: str, problems: list[str], *, may_be_cut: bool) -> Lines:
    end = position
    is_cut = len(batch.view) < batch.size
    try:
        for line, is_inside in annotate_batch(batch, position):
            yield line._replace(path=prefix + line.path), is_inside
            end = end if is_inside else line.offset + len(line.data)
        if isinstance(batch, RecordBatch):
            batch.check_bytes()  # Check the CRC. `annotate_batch` has already checked the number of records.
        else:
            batch.check()
    except KafkaError as error:
        if is_cut and not may_be_cut:
            problems.append(f"byte {end}: {len(batch.view)} of the batch's {batch.size} bytes are there")
        elif not is_cut:
            problems.append(f"byte {position}: {error.message}")
    yield from _bytes(f"{prefix}{'cut' if is_cut else 'unreadable'}", batch.view[end - position :], end)


def _bytes(path: str, data: memoryview, position: int) -> Lines:
    if data:
        yield Line(position, data, path, data, "bytes"), False
