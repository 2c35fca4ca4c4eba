"""Tests of the guide's drawings: each drawing must show what the text of its chapter says.

The Python code of a drawing runs code of HMB, and draws the result.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")

from tests.docs.conftest import EXTENSIONS
from tests.docs.test_drawing import functions_of

DRAWINGS = sorted((EXTENSIONS.parent / "guide" / "drawings").glob("*.py"))
MINE = ("groups", "long_poll", "protocol", "threads", "transactions")
NAMED = [(path, name) for path in DRAWINGS if path.stem in MINE for name in functions_of(path) if name != "bars"]


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    return importlib.import_module("drawing")


def words_of(drawing: Any, module: str, name: str) -> str:
    words: str = drawing.load(EXTENSIONS.parent / "guide" / "drawings" / f"{module}.py", name)().alternative
    return words


def in_order(words: str, *parts: str) -> bool:
    position = 0
    for part in parts:
        position = words.find(part, position) + 1
        if not position:
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize(("path", "name"), NAMED, ids=[f"{path.stem}-{name}" for path, name in NAMED])
def test_each_drawing_of_the_guide_describes_itself_in_words(drawing: Any, path: Path, name: str) -> None:
    picture = ElementTree.fromstring(drawing.load(path, name)().svg())
    assert len((picture.get("aria-label") or "").split()) >= 15
    # The longest text shows the bytes of a field, and each byte counts as a word.
    assert max(len((text.text or "").split()) for text in picture.iterfind(".//{*}text")) <= 13


def test_two_commits_share_one_append_and_one_sync(drawing: Any) -> None:
    words = words_of(drawing, "groups", "commit")
    assert words.count("add to queue") == words.count("journal: write") == 2
    assert (words.count("append 2 commits"), words.count(": sync")) == (1, 1)
    assert in_order(words, "append 2 commits", "sync", "on disk", "memory: ada", "memory: bob", "done", "done")


def test_a_fetch_adds_its_watcher_before_it_reads_and_waits(drawing: Any) -> None:
    words = words_of(drawing, "long_poll", "long_poll")
    assert in_order(words, "add watcher", "0 bytes", ": wait", ": append", ": wake", ": read", "consumer: records")


def test_the_markers_follow_the_decision(drawing: Any) -> None:
    words = words_of(drawing, "transactions", "transaction")
    assert in_order(words, "Ongoing", "append a batch", "PrepareCommit", "marker", "marker", "sync", "CompleteCommit")


def test_no_member_reads_during_a_classic_rebalance_and_all_go_on_in_the_modern_one(drawing: Any) -> None:
    classic = words_of(drawing, "groups", "classic")
    assert in_order(
        classic, "PreparingRebalance", "REBALANCE_IN_PROGRESS", "CompletingRebalance", "assignment", "Stable"
    )
    modern = words_of(drawing, "groups", "modern")
    assert in_order(
        modern,
        "has p0 p1 p2",
        "assigned p0 p1",
        "ada to coordinator: heartbeat: has p0 p1.",
        "eve: epoch 4: assigned p2.",
    )


def test_the_locks_of_two_requests_have_the_numbers_of_the_text(drawing: Any) -> None:
    words = words_of(drawing, "threads", "produce")
    assert in_order(words, "17 storage/group_commit.py _lock", "18 storage/log.py lock", "24 storage/files/virtual.py")
    words = words_of(drawing, "threads", "commit")
    assert in_order(words, "8 coordinator/group_runner.py lock", "15 coordinator/journal/partition.py write_lock")


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("produce", ["3 begin", "4 decode", "5 handle", "7 append", "10 write", "12 add entry", "base offset", "send"]),
        ("fetch", ["1 handle", "3 read", "5 read", "8 look up", "position", "file region", "9 encode", "11 sendfile"]),
        ("send", ["1 send", "3 append", "4 find the leader", "6 encode", "7 write", "8 response", "10 wake"]),
    ],
)
def test_the_drawing_of_a_tour_shows_its_steps_in_their_order(drawing: Any, name: str, steps: list[str]) -> None:
    words: str = drawing.load(EXTENSIONS.parent / "tour" / "drawings" / "calls.py", name)().alternative
    assert in_order(words, *steps)
