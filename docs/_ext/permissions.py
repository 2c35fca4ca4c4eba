"""The directive `permissions` shows which operations each API needs, as a table made from the code.

A page shows the table of operations with a directive that has no argument:
    ```{permissions}
    ```
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from hmb.broker.security.acls import rules
from hmb.broker.security.acls.rules import ApiRule
from hmb.protocol.messages import api_name

TITLES = ["API", "operations and resources", "what the broker refuses"]


class Permissions(SphinxDirective):
    """Shows the rules of `hmb/broker/security/acls/rules.py` as a table."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(rules.__file__)
        lines = [f"| {' | '.join(line)} |" for line in (TITLES, ["---"] * len(TITLES), *rows())]
        node = nodes.container(classes=["permissions"])
        self.state.nested_parse(StringList(lines, source=rules.__file__), 0, node)
        return [node]


def rows() -> Iterator[list[str]]:
    """Yield the cells of each API, in the order of the APIs' numbers."""
    for api in sorted({*rules.RULES, *rules.SPECIAL, *rules.OPEN}):
        yield [api_name(api), rules.permissions(api), effect(rules.RULES[api]) if api in rules.RULES else ""]


def effect(rule: ApiRule) -> str:
    """Return which part of a request the broker refuses if a permission is missing."""
    has_whole = rule.cluster or rule.transactional_id or rule.group
    if not (rule.topics or rule.items):
        return "the whole request"
    return "only the denied topics; otherwise the whole request" if has_whole else "only the denied items"


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("permissions", Permissions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
