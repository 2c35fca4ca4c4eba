"""Allows line breaks inside long names in code, but only after certain characters.

The style sheet of the website keeps each word of code on one line. The browser therefore never begins a new line inside
the option `--port`.

But a word of more than 30 characters may be too wide for a phone's screen or for a table column. This module allows a
line break in such a word: after a dot, a slash, an underscore or two colons. A short ending such as `.ms` or `.py`
stays with the text before it.

For example, a page can show `group.consumer.heartbeat.interval.ms` in two lines:
    group.consumer.
    heartbeat.interval.ms

In code with the CSS class `divided`, this module allows line breaks even in short words.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

LONGEST = 30  # a page may divide a word that has more characters than this
PLACE = re.compile(r"(?<=[a-zA-Z0-9)][./_])(?=\w{4})|(?<=::)(?=\w)")  # where a page can divide a word


def divide_long_words(_app: Sphinx, doctree: nodes.document, _page: str) -> None:
    """Allow line breaks in each piece of code that contains a word of more than 30 characters.

    The function also allows line breaks in code with the CSS class `divided`.
    """
    for code in list(doctree.findall(nodes.literal)):
        text = code.astext()
        if "divided" in code["classes"] or any(len(word) > LONGEST for word in text.split()):
            first, *others = PLACE.split(text)
            code.clear()
            code += nodes.Text(first)
            for part in others:
                code += [nodes.raw("", "<wbr/>", format="html"), nodes.Text(part)]
            if "divided" not in code["classes"]:
                code["classes"].append("divided")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-resolved", divide_long_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
