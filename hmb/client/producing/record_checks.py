"""Checks the key, the value, the headers and the timestamp of a record.

`send` checks a record with the functions of this module before it adds the record to a batch. So if a record is
invalid, `send` itself raises the error, in the application's thread.
"""

from __future__ import annotations

from typing import Any

from hmb.protocol.enums import INT64_MAX
from hmb.records import Header
from hmb.records.record import NO_TIMESTAMP

ESTIMATED_OVERHEAD = 20
"""The estimated bytes of a record besides its key and value, and of a header besides its name and value.

A usual record takes fewer bytes. If the timestamps of a batch are years apart, a record can take a few bytes more (at
most MAX_RECORD_OVERHEAD in hmb/records/record.py).
"""


def checked_size(key: Any, value: Any, headers: tuple[Header, ...]) -> int:
    """Check the parts of a record, and return the estimated number of bytes that the record takes in a batch.

    Raises TypeError if the key, the value or a header has the wrong type.
    """
    size = ESTIMATED_OVERHEAD
    if value is not None:
        size += len(value) if isinstance(value, bytes) else _not_bytes("value", value)
    if key is not None:
        size += len(key) if isinstance(key, bytes) else _not_bytes("key", key)
    for header in headers:
        if not isinstance(header, tuple | list) or len(header) != 2:
            hint = f"headers are a list of (name, value) pairs, for example [({header!r}, b'value')]"
            raise TypeError(f"{hint}: {header!r} is not a pair")
        name, content = header
        if not isinstance(name, str):
            raise TypeError(f"the name of a header must be a str, not {type(name).__name__}")
        if content is not None and not isinstance(content, bytes):
            _not_bytes(f"header {name!r}", content)
        size += ESTIMATED_OVERHEAD + len(name.encode()) + len(content or b"")
    return size


def check_timestamp(timestamp: int) -> None:
    """Check a timestamp. Raises TypeError if it is not an int, and ValueError if no record can have this time."""
    if not isinstance(timestamp, int):
        raise TypeError(f"a timestamp must be an int (milliseconds since 1970), not {type(timestamp).__name__}")
    # A batch stores each timestamp as its difference from the first timestamp, in an int64. If the first timestamp is
    # -1, the difference of the timestamp 2^63 - 1 would be 2^63, which is too large.
    if not NO_TIMESTAMP <= timestamp < INT64_MAX:
        allowed = "a number of milliseconds since 1970, from 0 to 2^63 - 2, or -1 for no timestamp"
        raise ValueError(f"the timestamp {timestamp} is not allowed; use {allowed}")


def _not_bytes(name: str, item: object) -> int:
    hint = "; a text has .encode()" if isinstance(item, str) else ""
    raise TypeError(f"{name} must be bytes or None, not {type(item).__name__}{hint}")
