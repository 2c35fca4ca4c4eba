"""Tests of citations: a KIP becomes a link to Kafka's wiki, and a source becomes a link to the bibliography."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")

from docutils import nodes

from tests.docs.conftest import EXTENSIONS, BuildPages

ROOT = EXTENSIONS.parents[1]
WIKI = "https://cwiki.apache.org/confluence/"
SOURCES = "# Sources\n\n(juchli-wolf-2015)=\nThesis.\n\n(kafka-0-7-design)=\nDesign.\n\n(dimson-ganjoo-2014)=\nPaper.\n"


def links(app: Any, page: str = "index") -> dict[str, str]:
    """Return the text and the target of each link of a page."""
    document = app.env.get_and_resolve_doctree(page, app.builder, tags=app.tags)
    return {
        each.astext(): each.get("refuri") or f"#{each.get('refid')}" for each in document.findall(nodes.reference)
    }


@pytest.fixture
def kips(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    return importlib.import_module("kips")


def test_a_proposal_becomes_a_link_to_its_page(build_pages: BuildPages) -> None:
    app = build_pages({"index": "# Page\n\nSee KIP-227, and KIP-79.\n\n" + SOURCES}, "citations")
    assert links(app) == {
        "KIP-227": WIKI + "display/KAFKA/"
        "KIP-227%3A+Introduce+Incremental+FetchRequests+to+Increase+Partition+Scalability",
        "KIP-79": WIKI + "pages/viewpage.action?pageId=65868090",
    }
    assert app.warning.getvalue() == ""


def test_a_proposal_without_an_entry_leads_to_the_list_of_all_proposals(build_pages: BuildPages) -> None:
    app = build_pages({"index": "# Page\n\nSee KIP-99999.\n"}, "citations")
    assert links(app) == {"KIP-99999": WIKI + "display/KAFKA/Kafka+Improvement+Proposals"}


def test_code_headings_and_links_keep_their_text(build_pages: BuildPages) -> None:
    text = "# About KIP-98\n\n`KIP-98` and [KIP-98](https://example.org/)\n\n```\nKIP-98\n```\n"
    app = build_pages({"index": text}, "citations")
    assert links(app) == {"KIP-98": "https://example.org/"}


def test_the_three_origins_of_hmb_lead_to_the_bibliography(build_pages: BuildPages) -> None:
    text = (
        '# Page\n\nIn (thesis, chapter 9.2, "Log"), the thesis (table 10.1), in the Kafka 0.7 design, "Log flush", '
        "and in the Hailstorm paper.\n\n```{toctree}\nsources\n```\n"
    )
    app = build_pages({"index": text, "sources": SOURCES}, "citations", builder="html")
    found = links(app)
    assert {name: target.partition("#")[2] for name, target in found.items() if "#" in target} == {
        "thesis, chapter 9.2": "juchli-wolf-2015",
        "thesis (table 10.1)": "juchli-wolf-2015",
        "Kafka 0.7 design": "kafka-0-7-design",
        "Hailstorm paper": "dimson-ganjoo-2014",
    }
    assert app.warning.getvalue() == ""


def test_the_bibliography_does_not_link_to_itself(build_pages: BuildPages) -> None:
    app = build_pages({"index": SOURCES + "\nThis is the Hailstorm paper, which cites KIP-98.\n"}, "citations")
    assert list(links(app)) == ["KIP-98"]


def test_a_proposal_in_a_docstring_becomes_a_link(
    build_pages: BuildPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cited_module.py").write_text('class Epochs:\n    """The epochs of one log (KIP-101)."""\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "# Page\n\n```{eval-rst}\n.. autoclass:: cited_module.Epochs\n```\n"
    app = build_pages({"index": text}, "sphinx.ext.autodoc", "citations")
    assert "KIP-101" in links(app)


def test_the_list_of_proposals_has_each_once(build_pages: BuildPages, kips: Any) -> None:
    app = build_pages({"index": "# Page\n\n```{kips}\n```\n"}, "citations")
    items = [item.astext() for item in app.env.get_doctree("index").findall(nodes.list_item)]
    assert items == [kips.title_of(number) for number in kips.all_numbers()]
    assert "KIP-98: Exactly Once Delivery and Transactional Messaging" in items
    assert len(set(items)) == len(items)


def test_nearly_all_proposals_that_the_project_cites_have_their_page(kips: Any) -> None:
    files = subprocess.run(["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    texts = [(ROOT / name).read_text() for name in files.stdout.split() if not name.startswith("tests/docs")]
    if not texts:
        pytest.skip("this is not a git checkout")
    cited = {int(number) for text in texts for number in re.findall(r"KIP-(\d+)", text)}
    missing = cited - set(kips.all_numbers())
    assert len(missing) <= len(cited) // 20, f"add the titles of {sorted(missing)} to docs/_ext/kips.py"
