"""Returns data of a log for the web page: a segment's batches, one batch, or the steps of a look-up.

The functions of this module read the files of a log, and never change these files. They use the same code as
the commands `hmb dump-log` and `hmb index-inspect`. So the web page shows the same numbers and lines as these
commands.

The view of a look-up shows how the running broker finds an offset. For example, the broker finds offset 8,100 in three
steps:
1. A binary search in the base offsets of all segments finds 8,021, the greatest base offset at or below 8,100.
2. A binary search in the offset index of segment 8,021 finds the entry (8,080 -> 5,000): offset 8,080 is at
   byte 5,000.
3. A scan of the segment from byte 5,000 on finds the batch that contains offset 8,100.

The view can also show how the broker finds the first record at or after a time. The broker takes the first
segment whose greatest timestamp is at or after this time. The time index of this segment leads to an offset. The
offset index leads from this offset to a position in the file. From this position on, the broker scans
the segment.

A segment can contain a million batches, and a record can have a size of 100 MB. So each function returns only a
limited amount of data, and says in the result whether the file contains more.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, replace
from io import BufferedReader
from pathlib import Path
from typing import Any

from hmb.protocol.enums import NO_PRODUCER_ID
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import NO_TIMESTAMP, Batch, RecordBatch
from hmb.records.reading import stored_offset
from hmb.storage.dump.entries import BatchEntry, optional_size
from hmb.storage.dump.hexadecimal import FieldEntry, batch_fields
from hmb.storage.dump.inspection import Search, bisection, scan, search
from hmb.storage.dump.segment_files import BatchAt, IndexReader, header_at, walk
from hmb.storage.dump.segments import crc_damage, whole_batch
from hmb.storage.log import Log
from hmb.storage.segment import Segment
from hmb.storage.time_index import TimeIndex

MAX_BATCHES = 500
MAX_ENTRIES = 2000  # a response contains at most this number of index entries
MAX_STEPS = 500  # a response contains at most this number of steps of a scan
MAX_LISTED_RECORDS = 100
MAX_LINES = 2000  # a response contains at most this number of lines with annotated bytes
MAX_BYTES = 256  # the page shows at most this number of bytes of each field of a batch
LONGEST_RECORD_TEXT = 1000  # characters; longer keys, values and headers are cut
LARGEST_BATCH = 16 << 20  # bytes; the page shows only the header of a larger batch

Json = dict[str, Any]


def segment_of(log: Log, base_offset: int) -> Segment:
    """Return the segment with this base offset. Raises KafkaError if the log has no such segment."""
    for segment in log.segments:
        if segment.base_offset == base_offset:
            return segment
    why = f"no segment of {log.directory.name} begins at offset {base_offset}; retention or compaction has removed it"
    raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, why)


# -- one segment


def segment_view(log: Log, base_offset: int, position: int = 0) -> Json:
    """Return at most MAX_BATCHES batches of a segment, and the first entries of its indexes.

    The batches begin at byte `position`. Raises KafkaError if the log has no such segment, and OSError if the file
    cannot be read.
    """
    segment = segment_of(log, base_offset)
    with segment.path.open("rb") as file:
        found = list(itertools.islice(walk(file, position), MAX_BATCHES + 1))
    shown = found[:MAX_BATCHES]
    return {
        "base_offset": base_offset,
        "bytes": segment.size,
        "from": position,
        "batches": [batch_row(at.batch, at.position) for at in shown],
        "next": found[-1].position if len(found) > MAX_BATCHES else None,
        "offset_index": _entries(segment.offset_index.file.path),
        "time_index": _entries(segment.time_index.file.path),
    }


def batch_row(batch: Batch, position: int | None) -> Json:
    """Return the row for one batch in the list of batches. `position` is None for a batch from a Fetch response."""
    is_v2 = isinstance(batch, RecordBatch)
    return {
        "position": position,
        "bytes": batch.size,
        "base_offset": stored_offset(batch),
        "last_offset": batch.last_offset,
        "records": batch.records_count if isinstance(batch, RecordBatch) else None,
        "max_timestamp": batch.max_timestamp,
        "codec": batch.codec.name.lower(),
        "producer_id": batch.producer_id if isinstance(batch, RecordBatch) else NO_PRODUCER_ID,
        "is_transactional": is_v2 and batch.is_transactional,
        "is_control": is_v2 and batch.is_control,
    }


def _entries(path: Path) -> Json:
    """Return the number of entries in an index file, and its first MAX_ENTRIES entries.

    If the file does not exist, the index is empty.
    """
    if not path.exists():
        return {"count": 0, "entries": []}
    with IndexReader(path) as index:
        return {"count": len(index), "entries": [index[number] for number in range(min(len(index), MAX_ENTRIES))]}


# -- one batch


def batch_view(log: Log, base_offset: int, position: int) -> Json:
    """Return the header, records and bytes of the batch at byte `position` of a segment. Raises KafkaError, OSError."""
    segment = segment_of(log, base_offset)
    if not 0 <= position < segment.size:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"position {position} is after the end of {segment.path.name}")
    with segment.path.open("rb") as file:
        return {"file": str(segment.path), **opened_batch(file, segment.path, position)}


def opened_batch(file: BufferedReader, path: Path, position: int) -> Json:
    """Return the header, records and bytes of the batch at `position` in a file. Raises KafkaError, OSError."""
    at = BatchAt(position, header_at(file, position))
    is_large = at.batch.size > LARGEST_BATCH
    damage = None if is_large else crc_damage(file, path, *at)
    whole = None if is_large else whole_batch(file, at, is_valid=damage is None)
    lines = [] if is_large else list(itertools.islice(_lines(file, path, at), MAX_LINES + 1))
    entry = BatchEntry(position, at.batch, at.batch.codec, damage is None)
    return {
        "header": entry.fields(),
        "damage": None if damage is None else damage.error,
        "note": f"The batch has {at.batch.size} bytes, so the page shows only its header." if is_large else None,
        **_records(whole),
        "lines": lines[:MAX_LINES],
        "has_more_lines": len(lines) > MAX_LINES,
    }


def _records(batch: Batch | None) -> Json:
    """Return a dict with the keys "records" and "problem" for a batch.

    "records" is a list of at most MAX_LISTED_RECORDS records. If a record cannot be decoded, the list ends before
    it, and "problem" contains the reason. Otherwise, "problem" is None.
    """
    records: list[Json] = []
    problem = None
    try:
        for record in itertools.islice(() if batch is None else batch.records(LARGEST_BATCH), MAX_LISTED_RECORDS):
            records.append(
                {
                    "offset": record.offset,
                    "timestamp": record.timestamp,
                    "key": _text(record.key),
                    "value": _text(record.value),
                    "headers": [[_cut(name), _text(value)] for name, value in record.headers],
                }
            )
    except KafkaError as error:
        problem = error.message
    return {"records": records, "problem": problem}


def _lines(file: BufferedReader, path: Path, at: BatchAt) -> Iterator[str]:
    """Yield the lines of `hmb dump-log --hex` for a batch, with at most MAX_BYTES bytes of each field."""
    for entry in batch_fields(file, path, at):
        if isinstance(entry, FieldEntry) and len(entry.data) > MAX_BYTES:
            yield from replace(entry, data=entry.data[:MAX_BYTES]).line().splitlines()
            yield f"        ... {len(entry.data) - MAX_BYTES} more bytes of {entry.field} are not shown"
        else:
            yield from entry.line().splitlines()


def _text(data: bytes | None) -> Json:
    """Return bytes as text, with their size. Long text is cut. Bytes that are not UTF-8 become hexadecimal numbers."""
    shown = (data or b"")[: LONGEST_RECORD_TEXT * 4]
    try:
        text, is_text = shown.decode(errors="strict" if len(shown) == len(data or b"") else "ignore"), True
    except UnicodeDecodeError:
        text, is_text = shown.hex(" "), False
    return {"bytes": optional_size(data), "text": text[:LONGEST_RECORD_TEXT], "is_text": is_text}


def _cut(text: str) -> str:
    return text[:LONGEST_RECORD_TEXT]


# -- a look-up


def look_up_offset(log: Log, offset: int) -> Json:
    """Return the steps by which the broker finds the batch that contains `offset`. Raises KafkaError, OSError."""
    if not log.log_start_offset <= offset < log.log_end_offset:
        span = f"{log.log_start_offset} to {log.log_end_offset - 1}"
        why = f"offset {offset} is not in the log, which contains the offsets {span}"
        if log.log_start_offset == log.log_end_offset:
            why = f"the log contains no records, so it has no offset {offset}"
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, why)
    segments = log.segments
    bases = [segment.base_offset for segment in segments]
    steps, number = bisection(len(bases), bases.__getitem__, offset)
    segment = segments[number or 0]
    first = {
        "name": "segments",
        "what": "base offset",
        "wanted": offset,
        "count": len(bases),
        "steps": [asdict(step) for step in steps],
        "number": number,
        "entry": [segment.base_offset, segment.path.name],
    }
    return {"wanted": offset, "segment": segment.base_offset, "steps": [first, *_in_segment(segment, offset=offset)]}


def look_up_time(log: Log, timestamp: int) -> Json:
    """Return the steps by which the broker finds the first record that is not older than `timestamp` (ms)."""
    segments = log.segments
    newest = [segment.max_timestamp for segment in segments]
    number = next((n for n, greatest in enumerate(newest) if greatest >= timestamp), None)
    if number is None:
        greatest = max(newest)
        why = "the log contains no timestamps" if greatest == NO_TIMESTAMP else f"the newest record has {greatest}"
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"no record has timestamp {timestamp} or a later one: {why}")
    segment = segments[number]
    read = [{"number": n, "key": key, "is_found": n == number} for n, key in enumerate(newest[: number + 1])]
    first = {
        "name": "segment times",
        "what": "greatest timestamp",
        "wanted": timestamp,
        "count": len(segments),
        "read": read[-MAX_STEPS:],
        "number": number,
        "entry": [segment.max_timestamp, segment.path.name],
    }
    steps = [first, *_in_segment(segment, timestamp=timestamp)]
    found = log.offset_for_timestamp(timestamp)
    return {"wanted": timestamp, "segment": segment.base_offset, "steps": steps, "offset": found and found.offset}


def _in_segment(segment: Segment, *, offset: int | None = None, timestamp: int | None = None) -> list[Json]:
    """Return the steps by which a look-up finds an offset or a timestamp (ms) in one segment.

    The steps are searches in the indexes of the segment, and then a scan of its .log file.
    """
    steps: list[Json] = []
    start, position = offset, 0
    time_index, offset_index = segment.time_index.file.path, segment.offset_index.file.path
    if timestamp is not None:
        start = segment.base_offset
        if time_index.exists():
            found = search(time_index, timestamp, below=True)
            steps.append(_search_step(found))
            start = segment.base_offset if found.entry is None else found.entry[1]
    if offset_index.exists() and start is not None:
        found = search(offset_index, start)
        steps.append(_search_step(found))
        position = 0 if found.entry is None else found.entry[1]
    scanned = scan(segment.path, position, **({"offset": offset} if timestamp is None else {"timestamp": timestamp}))
    read = [asdict(step) for step in itertools.islice(scanned, MAX_STEPS)]
    found_at = read[-1] if read and read[-1]["is_found"] else None
    return [*steps, {"name": "scan", "from": position, "read": read, "found": found_at, "bytes": segment.size}]


def _search_step(found: Search) -> Json:
    is_time_index = found.path.suffix == TimeIndex.SUFFIX
    return {
        "name": "time index" if is_time_index else "offset index",
        "what": "timestamp" if is_time_index else "offset",
        "wanted": found.wanted,
        "count": found.entries,
        "steps": [asdict(step) for step in found.steps],
        "number": found.number,
        "entry": found.entry,
    }
