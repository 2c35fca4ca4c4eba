"""Simulated crashes: the check of a lab stops a student's function after a given number of executed lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any


class Crash(BaseException):
    """A simulated crash. It is not a subclass of `Exception`, so `except Exception` does not catch it."""


def crashing(answer: ModuleType, number: int, call: Callable[[], object]) -> bool:
    """Simulate a crash of a student's function, and return whether the function has crashed.

    The function `call` executes code of the module `answer`. If it executes more than `number` lines of this
    module, a simulated crash stops it after `number` lines, and the result is True.

    If `call` executes at most `number` lines, it ends normally, and the result is False.
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
