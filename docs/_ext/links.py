"""Checks the links between the pages, and lists the links to other sites.

*Links inside the book.* Sphinx checks most of these links. It does not check links in raw HTML and in drawings. This
module therefore reads all HTML pages after Sphinx has written them. It logs a warning for each link to a file or to an
anchor that does not exist.

*Links to other sites.* The build does not open these links, because a machine without network access must be able to
build the book. The directive `external-links` shows a table of all links to other sites. Each row contains a link, the
pages that use the link, and a date:
    ```{external-links}
    ```

The file `links.txt` (beside `conf.py`) contains a date for each link to another site. The command `make links` opens
all these links, and writes the file. The date is the last day on which the linked site answered. If the site has never
answered, the date is the day on which `make links` first tried to open the link.

For a link without a date in `links.txt`, the table of links shows the day of the build.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urlsplit

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)
FILE = "links.txt"
LISTED, ANSWERED = "listed", "answered"
WORKING = ("working", "redirected")  # results of Sphinx's builder `linkcheck`


class Entry(NamedTuple):
    """The date of one link in `links.txt`.

    The state `answered` means that the linked site has answered. The field `day` is then the day of the newest
    answer.

    The state `listed` means that the linked site has never answered. The field `day` is then the day on which
    `make links` tried to open the link for the first time.
    """

    day: str
    state: str


class ExternalLinks(nodes.General, nodes.Element):
    """A placeholder for the table of links. The table replaces it after Sphinx has read all pages."""


class ExternalLinksDirective(SphinxDirective):
    """The directive `external-links`, which shows the book's links to other sites.

    Each build rereads a page with this directive, even an unchanged page, because other pages may have new links.
    """

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        return [ExternalLinks()]


def links_of(env: BuildEnvironment) -> dict[str, set[str]]:
    """Return, for each page, the links that lead to other sites. Sphinx saves this dictionary in its environment."""
    if not hasattr(env, "external_links"):
        env.external_links = {}  # type: ignore[attr-defined]
    found: dict[str, set[str]] = env.external_links  # type: ignore[attr-defined]
    return found


def read_page(app: Sphinx, document: nodes.document) -> None:
    """Store the links of a page that lead to other sites."""
    uris = {each.get("refuri", "") for each in document.findall(nodes.reference)}
    links_of(app.env)[app.env.docname] = {uri for uri in uris if uri.startswith(("http://", "https://"))}


def forget_page(_app: Sphinx, env: BuildEnvironment, page: str) -> None:
    links_of(env).pop(page, None)


def merge_pages(_app: Sphinx, env: BuildEnvironment, pages: Iterable[str], other: BuildEnvironment) -> None:
    """Copy the links of `pages` from the environment `other` to the environment `env`.

    Sphinx can read pages in several processes. Each process stores its links in a separate environment.
    Sphinx then calls this function for each process.
    """
    theirs = links_of(other)
    links_of(env).update({page: theirs[page] for page in pages if page in theirs})


def read_entries(path: Path) -> dict[str, Entry]:
    """Return the entry of each link in `links.txt`."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {address: Entry(day, state) for day, state, address in (line.split(" ", 2) for line in lines)}


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def show_list(app: Sphinx, document: nodes.document, page: str) -> None:
    """Replace each `ExternalLinks` object on a page with a table of the book's links to other websites."""
    for place in list(document.findall(ExternalLinks)):
        place.replace_self(_table(app, page))


def _table(app: Sphinx, page: str) -> nodes.table:
    pages: dict[str, list[str]] = {}
    for name, addresses in sorted(links_of(app.env).items()):
        for address in addresses:
            pages.setdefault(address, []).append(name)
    entries = read_entries(Path(app.confdir) / FILE)
    body = nodes.tbody()
    for address in sorted(pages, key=lambda each: (urlsplit(each).netloc, each)):
        day, state = entries.get(address, Entry(today(), LISTED))
        first, *more = pages[address]
        uri = app.builder.get_relative_uri(page, first) if app.builder.name != "dummy" else ""
        where = nodes.paragraph("", "", nodes.reference("", first, refuri=uri, internal=True))
        where += nodes.Text(f" and {len(more)} more" if more else "")
        link = nodes.paragraph("", "", nodes.reference("", address, refuri=address, internal=False))
        body += nodes.row(
            "", *(nodes.entry("", cell) for cell in (link, where, nodes.paragraph(text=f"{day}, {state}")))
        )
    titles = (nodes.entry("", nodes.paragraph(text=title)) for title in ("address", "page", "date"))
    columns = (nodes.colspec(colwidth=width) for width in (60, 25, 15))
    group = nodes.tgroup("", *columns, nodes.thead("", nodes.row("", *titles)), body, cols=3)
    return nodes.table("", group, classes=["external-links"])


# -- After the build, the following code checks the links in the HTML files.


class Anchors(HTMLParser):
    """Collects the anchors and the links of one HTML file."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])


def broken_links(folder: Path) -> Iterator[str]:
    """Yield a sentence for each broken link in the HTML files of `folder`.

    A link is broken if the linked file does not exist, or if this file does not contain the linked anchor. The
    function does not check links to other websites.
    """
    parsed: dict[Path, Anchors] = {}
    for file in sorted(folder.rglob("*.html")):
        if "_static" not in file.parts and "_sources" not in file.parts:
            parsed[file.resolve()] = anchors = Anchors()
            anchors.feed(file.read_text(encoding="utf-8"))
    for file, anchors in parsed.items():
        name = file.relative_to(folder.resolve())
        for link in dict.fromkeys(anchors.links):
            path, anchor = urldefrag(link)
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            target = (file.parent / unquote(path)).resolve() if path else file
            if not target.exists():
                yield f"{name}: the file of the link {link} does not exist"
            elif anchor and target in parsed and unquote(anchor) not in parsed[target].ids:
                yield f"{name}: the anchor of the link {link} does not exist"


def finish(app: Sphinx, error: Exception | None) -> None:
    """After a build of HTML, check the links of the pages. After a run of `linkcheck`, store its results."""
    if error is not None:
        return
    if app.builder.name == "html":
        for sentence in broken_links(Path(app.outdir)):
            LOGGER.warning(sentence)
    elif app.builder.name == "linkcheck":
        results = (Path(app.outdir) / "output.json").read_text(encoding="utf-8").splitlines()
        store(Path(app.confdir) / FILE, map(json.loads, results))


def store(path: Path, results: Iterable[dict[str, Any]]) -> None:
    """Write `links.txt` from the results of `linkcheck`, the builder of Sphinx that opens all links.

    The function writes a line for each link to another site:

    - If the link works, the line contains the current date and the state `answered`.
    - If the link fails, its old line stays.
    - If a failing link has no old line, the new line contains the current date and the state `listed`, because the
      site has never answered.
    """
    known, entries = read_entries(path), {}
    for result in results:
        address = result["uri"]
        if result["status"] in WORKING:
            entries[address] = Entry(today(), ANSWERED)
        elif address.startswith(("http://", "https://")):
            entries[address] = known.get(address, Entry(today(), LISTED))
    lines = (f"{entry.day} {entry.state} {address}\n" for address, entry in sorted(entries.items()))
    path.write_text("".join(lines), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(ExternalLinks)
    app.add_directive("external-links", ExternalLinksDirective)
    app.connect("doctree-read", read_page)
    app.connect("env-purge-doc", forget_page)
    app.connect("env-merge-info", merge_pages)
    app.connect("doctree-resolved", show_list)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
