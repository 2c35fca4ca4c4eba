"""A whole frame byte by byte: the message (`protocol.annotate`), and in it the record batches opened (`annotate`).

    000000  00 00 00 d6                                      size = 214
    ...
    00004b  00 00 00 00 00 00 00 00                          ...records.batches[0].base_offset = 0

`protocol` does not look into `records`; here each such line is replaced by those of its batches.  Whatever the bytes
are, every one of them stands in exactly one line: what cannot be read is `unreadable`, what nobody claims is `left`.
What is wrong is added to a list of problems, with its position, and reading goes on where it can: behind a batch whose
CRC is wrong, or whose records cannot be read, the next one follows.
"""

from collections.abc import Iterable, Iterator

from hmb.protocol.annotate import Line
from hmb.protocol.errors import KafkaError, ProtocolError
from hmb.records.annotate import annotate_batch, annotate_cut_header
from hmb.records.batch import RecordBatch
from hmb.records.reading import HEADER_PEEK, Batch, parse_batch

Lines = Iterator[tuple[Line, bool]]  # each with whether it is inside something compressed


def annotate_frame(message: Iterable[Line], wire: memoryview, problems: list[str], *, may_be_cut: bool) -> Lines:
    """The lines of a message, its records opened; `may_be_cut`: they may end inside a batch, as in a fetch's answer."""
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
        problems.insert(found, str(error))  # what is wrong with records that were cut follows from it
        rest = "unreadable"
    yield from _bytes(rest, wire[end:], end)


def annotate_records(
    buffer: memoryview, position: int, path: str, problems: list[str], *, may_be_cut: bool = False
) -> Lines:
    """The lines of all batches and messages in the buffer, which begins at `position` of its frame or file."""
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
        prefix = f"{path}{'batches' if batch.magic == 2 else 'messages'}[{number}]."
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
            batch.check_bytes()  # compaction leaves batches whose counts `check` would refuse
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
