"""Each chapter on storage has a drawing, a sketch, commands with their output, and real code.

The drawings match the real files.
"""

from __future__ import annotations

import importlib
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.docs.conftest import EXTENSIONS, BuildPages

CHAPTERS = EXTENSIONS.parent / "storage"
INDEX = (CHAPTERS / "index.md").read_text()
PAGES = sorted(path for path in CHAPTERS.glob("*.md") if path.stem != "index")
# Before a chapter shows HMB's own code, it shows a simpler program with at most this number of lines.
LONGEST_SKETCH = 32


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    return importlib.import_module("drawing")


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_a_chapter_goes_from_a_question_to_the_real_code(path: Path) -> None:
    text = path.read_text()
    opening, _, rest = text.partition("\n## The idea: ")
    assert "?" in opening
    sketch = rest.index("{literalinclude} programs/")
    real = rest.index("{literalinclude} ../../hmb/")
    assert sketch < real
    assert "{drawing} drawings/" in rest[:real]
    assert "{session}" in rest[:real]
    assert "## What HMB prints" in rest[:real]
    assert "\n## In short\n" in rest
    assert text.count("{term}`") >= 3


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_the_sketch_of_a_chapter_is_short(path: Path) -> None:
    name = re.search(r"{literalinclude} (programs/\w+\.py)", path.read_text())
    assert name is not None
    assert len((CHAPTERS / name[1]).read_text().splitlines()) <= LONGEST_SKETCH


def test_the_chapters_are_read_in_the_order_of_the_first_page() -> None:
    listed = re.findall(r"^\d+\. \[[^\]]+\]\((\S+)\.md\)", INDEX, re.MULTILINE)
    assert listed == INDEX.partition(":hidden:")[2].partition("```")[0].split()
    assert sorted(listed) == [path.stem for path in PAGES]
    for page, following in pairwise(listed):
        text = (CHAPTERS / f"{page}.md").read_text()
        assert re.search(rf"^Next: \[[^\]]+\]\({following}\.md\)", text, re.MULTILINE)


def function_of(drawing: Any, module: str, name: str) -> Any:
    return drawing.load(CHAPTERS / "drawings" / f"{module}.py", name)


def texts_of(picture: Any) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(picture.svg()).iterfind(".//{*}text")]


def test_producers_that_arrive_during_a_sync_share_the_next_one(drawing: Any) -> None:
    assert function_of(drawing, "durability", "run")().syncs == [(0, 1), (1, 4), (4, 5)]


def test_the_drawn_look_up_ends_at_the_batch_with_the_wanted_offset(drawing: Any) -> None:
    facts = function_of(drawing, "log", "facts")
    made, wanted = facts(), facts.__globals__["WANTED"]
    *before, last = made.scanned
    assert last.base_offset <= wanted <= last.last_offset
    assert not any(step.is_found for step in before)
    assert made.entries[made.found][0] <= wanted < made.entries[made.found + 1][0]


def test_the_drawn_recovery_cuts_after_the_recovery_point_and_replaces_before_it(drawing: Any) -> None:
    made = function_of(drawing, "recovery", "facts")()
    assert [block.words for block in made.after] == [
        ("0-1",), ("2-3",), ("empty", "4-5"), ("6-7",), ("8-9",), ("10-11",),
    ]  # fmt: skip
    assert made.end_offset == 12
    assert len(made.kept) == 2


def test_one_rename_of_the_drawn_swap_decides_what_a_start_finds(drawing: Any) -> None:
    texts = texts_of(function_of(drawing, "compaction", "steps_on_disk")())
    assert [text for text in texts if text.startswith("a start: ")] == [
        f"a start: {count} records" for count in (7, 6, 6, 6)
    ]


def test_the_drawn_round_keeps_the_last_record_of_each_key(drawing: Any) -> None:
    words = function_of(drawing, "compaction", "round_of_cleaner")().alternative
    assert "become 1 f=1, 6 c=2, 7 a=3, 9 d=null, 10 b=3, 11 e=2, 12 a=4. " in words


def test_the_drawn_batch_has_all_bytes_of_its_header(drawing: Any) -> None:
    lines = function_of(drawing, "batch", "lines")()
    header = [line for line in lines if not line.path.startswith("records[")]
    assert sum(len(line.data) for line in header) == 61
    texts = texts_of(function_of(drawing, "batch", "header")())
    assert "records_count = 2" in texts
    assert "base_timestamp = 1795272801915" in texts  # The drawing's row is too short for the date of this timestamp.
    record = texts_of(function_of(drawing, "batch", "record")())
    assert {"key.size = -1", "value.size = 10", "value = b'good night'"} <= set(record)


def test_a_file_of_the_data_directory_needs_a_meaning(drawing: Any) -> None:
    entry = function_of(drawing, "data_directory", "entry")
    assert entry(Path("weather-0"), is_folder=True).name == "weather-0/"
    with pytest.raises(drawing.DrawingError, match="no meaning for the file secrets"):
        entry(Path("secrets"), is_folder=False)


def page_of_settings(names: str) -> dict[str, str]:
    table = "```{settings} hmb.broker.config.broker:TOPIC_KEYS\n"
    return {"index": f"# Page\n\n{table}:only: {names}\n```\n"}


def test_a_chapter_shows_only_its_own_settings_in_its_own_order(build_pages: BuildPages) -> None:
    from docutils import nodes

    app = build_pages(page_of_settings("retention.ms retention.bytes"), "settings")
    (table,) = app.env.get_doctree("index").findall(nodes.table)
    rows = [row.children[0].astext() for row in table.findall(nodes.row)]
    assert rows == ["setting", "retention.ms", "retention.bytes"]
    assert app.warning.getvalue() == ""


def test_an_unknown_setting_is_a_warning_of_its_page(build_pages: BuildPages) -> None:
    app = build_pages(page_of_settings("retention.hours"), "settings")
    assert "TOPIC_KEYS has no setting retention.hours" in app.warning.getvalue()
