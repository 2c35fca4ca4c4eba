"""README is short, its links lead to existing files, and the tables that it refers to are complete."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from hmb.cli.main import COMMANDS
from tests.docs.conftest import EXTENSIONS

ROOT = EXTENSIONS.parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS_PAGE = (ROOT / "docs" / "commands" / "index.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\(([^)#]+)(?:#([^)]+))?\)")
LINKS = sorted({match.groups() for match in LINK.finditer(README) if "://" not in match[1]}, key=str)


def test_the_readme_has_at_most_150_lines() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize(("path", "anchor"), LINKS, ids=[path for path, _ in LINKS])
def test_a_link_of_the_readme_leads_to_a_file_and_its_heading(path: str, anchor: str | None) -> None:
    assert (ROOT / path).exists()
    if anchor:
        headings = re.findall(r"^#+ (.*)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-")) for heading in headings}


def test_the_short_reading_is_marked() -> None:
    begin, end = (README.index(f"<!-- The short reading {step}. -->\n") for step in ("begins", "ends"))
    assert README[begin:end].count("\n## ") == 1


def test_the_first_python_program_is_the_one_of_the_documentation() -> None:
    program = (ROOT / "docs" / "library" / "first_steps.py").read_text(encoding="utf-8").strip()
    assert f"```python\n{program}  # 0 b'hello'\n```" in README


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_names_each_command(name: str) -> None:
    assert re.search(rf"^\| \[`hmb {name}[ `\[].*\]\({name}\.md\) \| \S", COMMANDS_PAGE, re.MULTILINE)


def test_no_two_brokers_of_the_pages_have_one_port() -> None:
    """Each page uses its own ports, because Sphinx builds several pages at the same time."""
    pages = sorted(ROOT.joinpath("docs").rglob("*.md"))
    ports = [port for page in pages for port in re.findall(r"^\$ hmb broker .*--port (\d+)", page.read_text(), re.M)]
    assert "9098" in ports
    assert [port for port, count in Counter(ports).items() if count > 1 and port != "0"] == []
