"""Simulated crashes: the check of a lab stops a student's function after a given number of executed lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any


class Crash(BaseException):
    """A simulated crash. It is not a subclass of `Exception`, so `except Exception` does not catch it."""


def crashing(answer: ModuleType, number: int, call: Callable[[], object]) -> bool:
    """Run the function `call`, and return whether a simulated crash has stopped it.

    `call` executes code of the student's module `answer`. If it executes at most `number` lines of this module, it
    ends normally, and the result is False. Otherwise, a simulated crash stops `call` after `number` lines, and the
    result is True.
    """
    left = number

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != answer.__file__:
            return None
        if event == "line":
            left -= 1
            if left < 0:
                raise Crash
        return trace

    sys.settrace(trace)
    try:
        call()
    except Crash:
        return True
    finally:
        sys.settrace(None)
    return False
