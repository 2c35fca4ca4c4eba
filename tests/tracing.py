"""Records which functions of HMB are called while a broker and clients run in this process.

A tour is a list of the functions that handle one kind of request. The module test_tours.py checks that requests really
call these functions.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import hmb

ROOT = Path(hmb.__file__).parent


class Call(NamedTuple):
    """A call of a function: the function's file below hmb/ and its qualified name."""

    file: str
    function: str


@contextmanager
def recorded_calls() -> Iterator[list[Call]]:
    """Record the calls of this thread, and of all threads that start inside the `with` block."""
    calls: list[Call] = []
    prefix = f"{ROOT}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(prefix):
            calls.append(Call(name.removeprefix(prefix), frame.f_code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def first_missing(expected: Iterable[Call], calls: Sequence[Call]) -> Call | None:
    """Return the first expected call that is missing or out of order. Return None if all calls occur in order."""
    remaining = iter(calls)
    return next((call for call in expected if call not in remaining), None)
