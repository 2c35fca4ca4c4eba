"""The documentation has a page for each command."""

from pathlib import Path

import pytest

from hmb.cli.main import COMMANDS

PAGES = Path(__file__).parents[2] / "docs" / "commands"


def test_each_command_has_a_page() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {*COMMANDS, "index"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_runs_its_command_and_lists_its_options(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text()
    assert f".. click:: hmb.cli.{name.replace('-', '_')}:command\n   :prog: hmb {name}\n" in text
    assert "```{session}" in text
    assert f"\n$ hmb {name} " in text or f"\n$ hmb {name}\n" in text or f"| hmb {name} " in text
    assert f"\n{name}\n" in (PAGES / "index.md").read_text()
