"""Observes the calls of HMB's functions during a real run, so that a drawing can show these calls.

To draw the calls of some functions of HMB, a program creates a `Watched` for each function. It then runs HMB
inside `with traced(watched)`, which records the calls. Finally, `add_calls` adds the recorded calls to the drawing
`sequence` (sequence.py):
    watched = [
        Watched(produce.handle, "broker", "Produce", caller="producer", reply="offset"),
        Watched(Log.append, "log", "append"),
    ]
    with traced(watched) as events, hmb.Broker() as broker:
        ...
    add_calls(sequence, events)

Each participant of the drawing has a *lane*, a vertical line. A call becomes an arrow from the lane of the calling
function to the lane of the called function.

A program imports the functions whose calls it draws. If somebody renames one of these functions, the import fails, and
Sphinx cannot build the page with the drawing. A drawing therefore never shows a function that no longer exists.
"""

from __future__ import annotations

import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple, TypeAlias

import sequence as sequences
from drawing import DrawingError, Tone

Locals: TypeAlias = Mapping[str, Any]
Text: TypeAlias = str | Callable[[Locals], str]  # a text, or a function that makes it from the call's local variables

PATIENCE = 60.0  # seconds, the maximum time that `wait_for_calls` waits for the calls of a function


class Watched(NamedTuple):
    """A function whose calls are recorded, and the way in which a drawing shows these calls.

    In the drawing, each participant (such as a broker or a log) has a vertical line. A call is an arrow from the
    line of the calling participant to the line of the called participant.

    - `lane` is the name of the participant to which the function belongs. If `lane` is empty, the drawing does not
      show the call.
    - `text` is the text of the arrow.
    - `caller` is the name of the calling participant, for example "producer". If a recorded function makes the
      call, the drawing uses the participant of this function instead.
    - `reply` is the text of a second arrow, which shows the return to the caller. If `reply` is empty, the drawing
      has no second arrow.
    - `waits` is true if a bar on the calling participant's line shows the time from the call to the return.
    """

    function: Callable[..., Any]
    lane: Text
    text: Text
    caller: Text = ""
    reply: str | Callable[[Any], str] = ""  # a text, or a function that makes it from the returned value
    tone: Tone = "plain"
    waits: bool = False


class Event(NamedTuple):
    """The beginning or the end of a recorded call of a function.

    `watched` describes the called function. If `watched.text` is a function, it makes the event's `text` from the
    local variables of the call. Otherwise, the event's `text` equals `watched.text`. The fields `lane` and `caller`
    follow the same rule.
    """

    moment: float  # the time of the event in seconds, as `time.monotonic()` returns it
    thread: str
    watched: Watched
    lane: str
    caller: str
    text: str
    reply: str | None  # None for the event at which the call begins


@contextmanager
def traced(watched: Iterable[Watched]) -> Iterator[list[Event]]:
    """In a `with` block, collect the calls of `watched` functions by this thread, and by new threads."""
    by_code = {inspect.unwrap(each.function).__code__: each for each in watched}
    events: list[Event] = []

    def note(frame: FrameType, kind: str, value: Any) -> None:
        found = by_code.get(frame.f_code)
        if found is None or kind not in ("call", "return"):
            return
        variables = frame.f_locals
        lane = _made(found.lane, variables)
        if not lane:
            return
        reply = None if kind == "call" else found.reply(value) if callable(found.reply) else found.reply
        caller, text = _made(found.caller, variables), _made(found.text, variables)
        events.append(Event(time.monotonic(), threading.current_thread().name, found, lane, caller, text, reply))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield events
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def _made(text: Text, variables: Locals) -> str:
    return text(variables) if callable(text) else text


def wait_for_calls(events: Sequence[Event], function: Callable[..., Any], count: int, *, ended: bool = False) -> None:
    """Wait for `count` calls of a function. If `ended` is true, wait until these calls have ended.

    Raises DrawingError if this takes more than PATIENCE seconds.
    """
    deadline = time.monotonic() + PATIENCE
    while sum(each.watched.function is function and (each.reply is not None) is ended for each in events) < count:
        if time.monotonic() > deadline:
            raise DrawingError(f"{function.__qualname__} was not called {count} times in {PATIENCE:g} s")
        time.sleep(0.002)


def add_calls(sequence: sequences.Sequence, events: Sequence[Event]) -> None:
    """Draw each recorded call as an arrow from the calling participant to the called participant.

    Each recorded function belongs to a participant, for example to a broker. If a participant calls its own
    function, the drawing shows the text of the call without an arrow.

    The calling participant is the first of these participants that exists:

    1. the participant of the recorded function that makes the call
    2. the participant named `event.caller`, for example "producer"
    3. the participant of the first recorded function that the thread has called
    """
    threads: dict[str, _Thread] = {}
    for event in events:
        thread = threads.setdefault(event.thread, _Thread(event.lane, []))
        if event.reply is None:
            _add(sequence, thread.caller(event), event.lane, event.text, event.watched.tone)
            if event.watched.waits:
                sequence.begin_wait(thread.caller(event))
            thread.lanes.append(event.lane)
        elif thread.lanes:
            thread.lanes.pop()
            if event.reply:
                _add(sequence, event.lane, thread.caller(event), event.reply, event.watched.tone, dashed=True)
            if event.watched.waits:
                sequence.end_wait(thread.caller(event))


class _Thread(NamedTuple):
    """A thread, and the recorded functions that the thread is executing.

    Each recorded function belongs to a participant of the drawing, and `lanes` lists the participants. For
    example, if a function of "broker" has called a function of "log", the list `lanes` is ["broker", "log"].

    `home` is the participant of the thread's first recorded function.
    """

    home: str
    lanes: list[str]

    def caller(self, event: Event) -> str:
        return self.lanes[-1] if self.lanes else event.caller or self.home


def _add(
    sequence: sequences.Sequence, source: str, target: str, text: str, tone: Tone, *, dashed: bool = False
) -> None:
    if source == target:
        sequence.note(source, text)
    else:
        sequence.message(source, target, text, tone=tone, dashed=dashed)
