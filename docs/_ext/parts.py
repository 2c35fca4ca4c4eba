"""The directive `part` adds one part of the book to the navigation: the title of the part, and its pages.

For example, these lines on the book's first page add the title "Labs" and the lab pages to the navigation:
    ```{part} Labs
    labs/*
    ```

The argument of the directive `part` is the title of the part. Each line below the argument is the name of a page, or a
pattern such as `labs/*` that matches the names of several pages. The names are relative to the folder of the page that
contains the directive.

The directive ignores names of pages that do not exist, and patterns that match no page. If no page remains, the
directive adds nothing to the navigation, not even the title of the part. The first page of the book can therefore name
parts whose pages do not exist yet.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.directives.other import TocTree
from sphinx.util import docname_join
from sphinx.util.matching import patfilter


class Part(TocTree):
    """A part of the navigation: a title, and a list of pages. The list contains only pages that exist."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {}  # noqa: RUF012 - as in the base class

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # Every build reads the page again, because a pattern may match a new page.
        found = [line for line in self.content if line and self._matches(line)]
        if not found:
            return []
        for line in reversed(range(len(self.content))):
            if self.content[line] not in found:
                del self.content[line]
        self.options |= {"hidden": None, "glob": None, "caption": self.arguments[0]}
        return super().run()

    def _matches(self, line: str) -> bool:
        return bool(patfilter(self.env.found_docs, docname_join(self.env.docname, line)))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("part", Part)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
