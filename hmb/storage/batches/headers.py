"""Scanning the headers of the batches in a log file, without their records.

A header is small and a batch may be large. A scan reads a few kilobytes of the file at once. It finds the headers of
several small batches in them, and skips the records of a large batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Batch, parse_batch
from hmb.records.reading import HEADER_PEEK
from hmb.storage.files.virtual import VirtualFile

SCAN_WINDOW = 8192  # bytes of one read. The log has an index entry for each 4,096 bytes, so one read is mostly enough.


def headers(file: VirtualFile, position: int, end: int) -> Iterator[tuple[int, Batch]]:
    """Yield `(position, batch)` for each batch from `position` up to `end`. The batches have only their headers.

    Raises CORRUPT_MESSAGE if the bytes are not whole batches, OSError.
    """
    window, window_start = b"", position
    while position < end:
        if position + HEADER_PEEK > window_start + len(window):
            window, window_start = file.read(min(SCAN_WINDOW, end - position), position), position
        batch = parse_batch(window, position - window_start)
        if position + batch.size > end:
            why = f"position {position}: a batch of {batch.size} bytes, but only {end - position} are left"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, why)
        yield position, batch
        position += batch.size
