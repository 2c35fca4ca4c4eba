"""Checks the arguments with which a test calls `hmb.testing`.

If an argument has a wrong type, the error names the value and the possible types.
"""

from __future__ import annotations

from datetime import timedelta

from hmb.testing.errors import FaultError
from hmb.units import is_duration, parse_duration

Seconds = float | str | timedelta  # a number of seconds, or a text with a unit, such as `500ms`


def seconds(name: str, value: Seconds) -> float:
    """Return a time as a number of seconds. For example, return 0.5 for the text `500ms`.

    The time `value` can be a number of seconds, a text with a unit, or a `timedelta`. For any other value, the
    function raises FaultError. The error message contains `name`, the name of the argument.
    """
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str) and is_duration(value):
        return parse_duration(value) / 1000
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise FaultError(f"{name}={value!r}: the value must be a number of seconds, a text such as '500ms', or a timedelta")


def check_whole_number(name: str, value: object) -> None:
    """Raise FaultError if `value` is neither a whole number nor None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise FaultError(f"{name}={value!r}: the value must be a whole number")


def check_text(name: str, value: object) -> None:
    """Raise FaultError if `value` is neither a text nor None."""
    if value is not None and not isinstance(value, str):
        raise FaultError(f"{name}={value!r}: the value must be a text")


def as_bytes(name: str, value: bytes | str | None) -> bytes | None:
    """Return a key or a value of a record as bytes: a text is encoded as UTF-8. Raises TypeError for another type."""
    if value is None or isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r}: the value must be bytes, a text or None, not {type(value).__name__}")
    return value.encode()


def check_headers(headers: object) -> None:
    """Raise TypeError if a header is not a pair of a name (a text) and a value (bytes or None)."""
    for each in headers if isinstance(headers, (tuple, list)) else [headers]:
        match each:
            case (str(), bytes() | None):
                pass
            case _:
                raise TypeError(f"headers: {each!r} must be a pair of a text and bytes, such as ('source', b'shop')")
