"""The directive `session` shows commands with their output. If a command fails, the documentation's build fails."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")

from docutils import nodes
from sphinx.testing.util import SphinxTestApp

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXTENSIONS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


command_session = load("command_session")


@pytest.fixture
def session() -> Iterator[Any]:
    session = command_session.CommandSession()
    yield session
    session.close()


def test_a_page_shows_the_default_port_of_its_broker(session: Any) -> None:
    session.start_broker()
    assert session.run("hmb topics create weather") == "created topic weather\n"
    assert "127.0.0.1:9092" in session.run("hmb meta --versions")
    assert session.run("ls hmb-data | grep weather") == "weather-0\n"


def test_a_command_may_name_the_default_port(session: Any) -> None:
    session.start_broker()
    assert session.run("hmb topics list -b 127.0.0.1:9092") == ""


def test_a_comment_names_the_expected_exit_code(session: Any) -> None:
    assert "neither a file nor" in session.run("hmb decode nosuch.bin  # exit code 3")
    with pytest.raises(command_session.CommandFailed, match=r"ended with exit code 3:\nhmb: nosuch.bin"):
        session.run("hmb decode nosuch.bin")
    with pytest.raises(command_session.CommandFailed, match="ended with exit code 0"):
        session.run("true  # exit code 3")


def test_the_directory_looks_like_the_root(session: Any) -> None:
    assert session.run("echo $PWD/file $TMPDIR/other") == "file /tmp/other\n"


def test_commands_in_the_background_end_with_the_session() -> None:
    session = command_session.CommandSession()
    assert session.run("hmb broker &") == "listening on 127.0.0.1:9092, data in hmb-data\n"
    (process,) = session._background
    session.close()
    assert process.poll() is not None
    assert not session.directory.exists()


def test_a_background_command_without_output_fails_the_build(session: Any) -> None:
    with pytest.raises(command_session.CommandFailed, match="printed no line"):
        session.run("true &")


def test_a_command_may_continue_on_several_lines() -> None:
    assert command_session.commands(["$ one \\", "  more", "", "$ two"]) == ["one \\\n  more", "two"]
    with pytest.raises(command_session.CommandFailed, match="is not a command"):
        command_session.commands(["one"])


def build(directory: Path, text: str) -> SphinxTestApp:
    (directory / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(EXTENSIONS)!r})\nextensions = ['command_session']\n"
    )
    (directory / "index.rst").write_text(text)
    app = SphinxTestApp("dummy", srcdir=directory)
    app.build()
    return app


def test_a_page_shows_commands_with_their_output(tmp_path: Path) -> None:
    (tmp_path / "three.txt").write_text("1\n2\n3\n")
    app = build(
        tmp_path,
        "Title\n=====\n\n.. session::\n   :no-broker:\n   :files: three.txt\n   :lines: 2\n\n   $ cat three.txt\n",
    )
    (block,) = app.env.get_doctree("index").findall(nodes.literal_block)
    assert block.astext() == "$ cat three.txt\n1\n2\n...\n"
    assert app.warning.getvalue() == ""
    app.cleanup()


def test_a_failing_command_fails_the_build(tmp_path: Path) -> None:
    app = build(tmp_path, "Title\n=====\n\n.. session::\n   :no-broker:\n\n   $ false\n")
    assert "'false' ended with exit code 1" in app.warning.getvalue()
    app.cleanup()


def test_a_block_after_a_colon_is_separated_from_its_sentence() -> None:
    docstrings = load("docstrings")
    text = ["Two files:", "- a log", "- an index", "", "For example::", "    0  a", "Note:", "The end."]
    assert docstrings.as_markdown("\n".join(text)) == (
        "Two files:\n\n- a log\n- an index\n\nFor example:\n\n    0  a\nNote:\nThe end."
    )


def test_indented_blocks_and_columns_of_a_docstring_become_literal_text() -> None:
    docstrings = load("docstrings")
    text = ["What it is:", "", "    a  layout", "", "- an item", "", "    of it", "", "Said::", "", "    so"]
    announced = [*text[:2], "::", "", *text[2:]]
    assert docstrings.announce_blocks(text) == announced
    columns = ["one        thing", "another    thing", "", "A sentence.  Another one.", "And more.  And more."]
    assert docstrings.indent_columns(columns) == [f"    {columns[0]}", f"    {columns[1]}", *columns[2:]]


def test_a_list_with_columns_in_a_docstring_stays_a_list() -> None:
    docstrings = load("docstrings")
    columns = ["- `batch`    a batch", "- `record`   a record"]
    assert docstrings.indent_columns(columns) == columns


def test_the_docstring_that_python_gives_a_field_of_a_named_tuple_is_left_out() -> None:
    lines = ["Alias for field number 0"]
    load("docstrings").process_docstring(None, "attribute", "Point.x", None, None, lines)
    assert lines == []
