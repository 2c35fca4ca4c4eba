"""Reads the headers of the batches in a log file, and skips the records.

The header of a record batch has 61 bytes, but the whole batch can be a megabyte long. To find the headers, this
module reads 8,192 bytes of the file at a time. If the batches are small, these bytes contain several headers.
If a batch is large, the module skips its records, and reads the file again at the next header.
"""

from __future__ import annotations

from collections.abc import Iterator

from hmb.protocol.errors import corrupt_message
from hmb.records import Batch, parse_batch
from hmb.records.reading import HEADER_PEEK
from hmb.storage.files.virtual import VirtualFile

# A look-up starts at an entry of the offset index. The index has an entry for about every 4,096 bytes of the log file.
# So one read of 8,192 bytes is usually enough.
SCAN_WINDOW = 8192


def headers(file: VirtualFile, position: int, end: int) -> Iterator[tuple[int, Batch]]:
    """Yield `(position, batch)` for each batch from `position` up to `end`. The yielded batches contain only headers.

    Raises CORRUPT_MESSAGE if the bytes are not whole batches, and OSError if the file cannot be read.
    """
    window, window_start = b"", position
    while position < end:
        if position + HEADER_PEEK > window_start + len(window):
            window, window_start = file.read(min(SCAN_WINDOW, end - position), position), position
        batch = parse_batch(window, position - window_start)
        size = batch.size
        if position + size > end:
            why = f"position {position}: a batch of {size} bytes, but only {end - position} are left"
            raise corrupt_message(why)
        yield position, batch
        position += size
