"""Tests of sequence drawings: messages, notes and waits, and the drawing that is made from a trace of real calls."""

from __future__ import annotations

import importlib
import threading
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")

from tests.docs.conftest import EXTENSIONS

NARROW = 120  # pixels between two vertical lines


@pytest.fixture
def sequence(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    return importlib.import_module("sequence")


@pytest.fixture
def tracing(sequence: Any) -> Any:
    return importlib.import_module("tracing")


def of_three(sequence: Any) -> Any:
    return sequence.Sequence(*(sequence.Lane(name, "amber") for name in "abc"), gap=NARROW)


def picture_of(made: Any) -> ElementTree.Element:
    return ElementTree.fromstring(made.drawing("Three lanes.").svg())


def lines_at(picture: ElementTree.Element, x: float) -> list[list[float]]:
    """Return the list [top y, bottom y] for each vertical line at the position `x`, in order from top to bottom."""
    found = []
    for line in picture.iterfind(".//{*}polyline"):
        points = [[float(value) for value in point.split(",")] for point in line.get("points", "").split()]
        if all(point[0] == x for point in points):
            found.append([points[0][1], points[-1][1]])
    return sorted(found)


def test_the_text_alternative_lists_messages_and_notes_in_order(sequence: Any) -> None:
    made = of_three(sequence)
    made.message("a", "b", "Fetch")
    made.note("b", "waits")
    made.message("b", "a", "records", dashed=True)
    assert made.drawing("Three lanes.").alternative == "Three lanes. a to b: Fetch. b: waits. b to a: records."


def test_a_text_does_not_cross_the_line_of_a_lane(sequence: Any) -> None:
    made = of_three(sequence)
    made.message("a", "c", "a long text in the middle")
    picture = picture_of(made)
    middle = 8 + (NARROW - 16) / 2 + NARROW
    (_, above), (below, _) = lines_at(picture, middle)
    (text,) = [text for text in picture.iterfind(".//{*}text") if "long" in (text.text or "")]
    assert above < float(text.get("y", "0")) <= below + 2


def test_a_short_text_of_a_long_message_is_beside_its_source(sequence: Any) -> None:
    made = of_three(sequence)
    made.message("c", "a", "short")
    picture = picture_of(made)
    (text,) = [text for text in picture.iterfind(".//{*}text") if text.text == "short"]
    lane = 8 + (NARROW - 16) / 2
    assert lane + NARROW < float(text.get("x", "0")) < lane + 2 * NARROW


def test_a_wait_is_a_bar_from_its_first_row_to_its_last_row(sequence: Any) -> None:
    made = of_three(sequence)
    made.message("a", "b", "Fetch")
    made.begin_wait("a")
    made.note("b", "something else")
    made.message("b", "a", "records")
    made.end_wait("a")
    made.end_wait("c")  # This wait has never begun.
    bars = [shape for shape in picture_of(made).iterfind(".//{*}rect") if "tone-violet" in (shape.get("class") or "")]
    assert [float(bar.get("height", "0")) for bar in bars] == [2 * sequence.ROW]


def test_a_trace_contains_calls_of_all_threads(sequence: Any, tracing: Any) -> None:
    def outer() -> int:
        return inner(2)

    def inner(value: int) -> int:
        return value * 2

    watched = [
        tracing.Watched(outer, "b", "outer", caller="a", reply=str),
        tracing.Watched(inner, "c", lambda variables: f"inner {variables['value']}", waits=True),
    ]
    with tracing.traced(watched) as events:
        thread = threading.Thread(target=outer)
        thread.start()
        thread.join()
    outer()
    made = of_three(sequence)
    tracing.add_calls(made, events)
    assert made.drawing("Trace.").alternative == "Trace. a to b: outer. b to c: inner 2. b to a: 4."


def test_a_call_inside_the_same_lane_is_a_note_and_an_empty_lane_is_left_out(sequence: Any, tracing: Any) -> None:
    def first() -> None:
        second()
        third()

    def second() -> None:
        pass

    def third() -> None:
        pass

    watched = [
        tracing.Watched(first, "a", "first"),
        tracing.Watched(second, "a", "second", reply="done"),
        tracing.Watched(third, "", "third"),
    ]
    with tracing.traced(watched) as events:
        first()
    made = of_three(sequence)
    tracing.add_calls(made, events)
    assert made.drawing("Trace.").alternative == "Trace. a: first. a: second. a: done."


def test_a_later_call_of_a_thread_comes_from_the_lane_of_its_first_call(sequence: Any, tracing: Any) -> None:
    def first() -> None:
        pass

    def second() -> None:
        pass

    watched = [tracing.Watched(first, "b", "first", caller="a"), tracing.Watched(second, "c", "second")]
    with tracing.traced(watched) as events:
        first()
        second()
    made = of_three(sequence)
    tracing.add_calls(made, events)
    assert made.drawing("Trace.").alternative == "Trace. a to b: first. b to c: second."


def test_a_run_waits_for_calls_of_other_threads(tracing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def called() -> None:
        pass

    with tracing.traced([tracing.Watched(called, "a", "called")]) as events:
        threading.Timer(0.05, called).start()
        tracing.wait_for_calls(events, called, 1, ended=True)
    assert len(events) == 2
    monkeypatch.setattr(tracing, "PATIENCE", 0.02)
    with pytest.raises(tracing.DrawingError, match=r"called was not called 2 times in 0\.02 s"):
        tracing.wait_for_calls(events, called, 2)
