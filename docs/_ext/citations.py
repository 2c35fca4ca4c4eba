"""Turns each citation of a source into a link, in the pages and in the docstrings that the pages show.

The code cites a source in plain text, so that the citation is also readable in an editor. On the pages, each citation
becomes a link. The left column shows a citation, and the right column shows where its link leads:
    KIP-227                       the proposal's page in Kafka's wiki
    thesis, chapter 4.4           the thesis in the bibliography
    Kafka 0.7 design              the 0.7 design page in the bibliography
    Hailstorm paper               the paper in the bibliography

A citation in code, in a heading or inside another link does not become a link. No page links to itself.

The directive `kips` shows a list of all Kafka Improvement Proposals (KIPs) that the documentation links to.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from kips import address_of, all_numbers, title_of
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

KIP = r"KIP-(?P<kip>\d+)"
CHAPTER = r"(?:chapter|ch\.|section|table) \d+(?:\.\d+)*"
SOURCES = {  # the text of a citation, and the label of the source on the bibliography page
    rf"(?P<thesis>thesis, {CHAPTER}|thesis \({CHAPTER}\))": "juchli-wolf-2015",
    r"(?P<design>Kafka 0\.7(?:'s)? design)": "kafka-0-7-design",
    r"(?P<hailstorm>Hailstorm paper)": "dimson-ganjoo-2014",
}
CITATION = re.compile("|".join((KIP, *SOURCES)))
LABELS = dict(zip(("thesis", "design", "hailstorm"), SOURCES.values(), strict=True))
NOT_LINKED = (nodes.literal, nodes.literal_block, nodes.reference, nodes.title, nodes.term, nodes.raw, nodes.caption)


class CitationLinks(SphinxTransform):
    """Turns each citation in a page's text into a link to the cited source."""

    default_priority = 700  # This transform runs after the docstrings of autodoc have become text of the page.

    def apply(self, **kwargs: Any) -> None:
        for text in list(self.document.findall(nodes.Text)):
            if CITATION.search(text) and not _is_inside(text, (*NOT_LINKED, addnodes.pending_xref)):
                text.parent.replace(text, self._with_links(str(text)))

    def _with_links(self, words: str) -> list[nodes.Node]:
        """Return the nodes of a text: a link for each citation, and plain text for the words between the citations."""
        found: list[nodes.Node] = []
        end = 0
        for match in CITATION.finditer(words):
            if LABELS.get(match.lastgroup or "") in self.document.nameids:
                continue
            found += [nodes.Text(words[end : match.start()]), _link(match, self.env.docname)]
            end = match.end()
        return [*found, nodes.Text(words[end:])]


def _link(match: re.Match[str], page: str) -> nodes.Element:
    if match["kip"]:
        number = int(match["kip"])
        return nodes.reference("", match[0], refuri=address_of(number), reftitle=title_of(number), internal=False)
    assert match.lastgroup is not None
    label = LABELS[match.lastgroup]
    content = nodes.inline("", match[0])
    return addnodes.pending_xref(
        "", content, refdomain="std", reftype="ref", reftarget=label, refexplicit=True, refwarn=True, refdoc=page
    )


def _is_inside(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    parent = node.parent
    while parent is not None:
        if isinstance(parent, kinds):
            return True
        parent = parent.parent
    return False


class KipList(SphinxDirective):
    """The directive `kips`, which shows a list with a link to each proposal (KIP) in `kips.py`."""

    def run(self) -> list[nodes.Node]:
        items = nodes.bullet_list()
        for number in all_numbers():
            link = nodes.reference("", title_of(number), refuri=address_of(number), internal=False)
            items += nodes.list_item("", nodes.paragraph("", "", link))
        return [items]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(CitationLinks)
    app.add_directive("kips", KipList)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
