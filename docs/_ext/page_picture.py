"""The directive `page-picture` shows a screenshot of the broker's page, which `hmb broker --ui` serves.

For example, these lines show the picture `look-up` with a text alternative (`alt`) and a caption:
    ```{page-picture} look-up
    :alt: Three steps: the search in the segments, the search in the index, and the scan.
    The broker's page shows how the broker looks up offset 203.
    ```

The argument of `page-picture` is the name of a picture in `docs/pictures`. Each picture has two files: one with
light colors, and one with dark colors. The reader's browser shows one of the two. A book for an e-reader
contains only the light file.

The program `tools/page_pictures.py` takes the screenshots, and writes them into `docs/pictures`. Run the program after
each change of the broker's web page.
"""

from __future__ import annotations

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class PagePicture(SphinxDirective):
    """The directive `page-picture`: a figure with a screenshot and a caption.

    The screenshot has two files, one with light colors and one with dark colors. On a web page, the reader's
    browser shows one of the two.
    """

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        light, dark = (self._image(colours) for colours in ("light", "dark"))
        words = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, words)
        caption = nodes.caption("", "", *(child for paragraph in words.children for child in paragraph.children))
        return [nodes.figure("", light, addnodes.only("", dark, expr="not epub"), caption, classes=["page-picture"])]

    def _image(self, colours: str) -> nodes.image:
        uri = f"/pictures/{self.arguments[0]}-{colours}.png"
        return nodes.image(uri=uri, alt=self.options["alt"], classes=[f"only-{colours}"])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("page-picture", PagePicture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
