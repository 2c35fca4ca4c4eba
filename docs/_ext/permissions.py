"""The directive `permissions` shows a table of the permissions that a client needs for each API.

The directive needs no argument, because its table contains all permission rules from the broker's code:
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
    """The directive `permissions`, which shows the rules in `hmb/broker/security/acls/rules.py` as a table."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(rules.__file__)
        lines = [f"| {' | '.join(line)} |" for line in (TITLES, ["---"] * len(TITLES), *rows())]
        node = nodes.container(classes=["permissions"])
        self.state.nested_parse(StringList(lines, source=rules.__file__), 0, node)
        return [node]


def rows() -> Iterator[list[str]]:
    """Yield one row of the table for each API, in the order of the APIs' numbers. A row is a list of cells."""
    for api in sorted({*rules.RULES, *rules.SPECIAL, *rules.OPEN}):
        yield [api_name(api), rules.permissions(api), effect(rules.RULES[api]) if api in rules.RULES else ""]


def effect(rule: ApiRule) -> str:
    """Return the text of a table cell: what the broker refuses if a client lacks a permission.

    For example, a request names two topics, and the client lacks the permission for one of them. The broker then
    refuses only this topic. But if the client lacks the permission for the request's group, the broker refuses the
    whole request.
    """
    has_whole = rule.cluster or rule.transactional_id or rule.group
    if not (rule.topics or rule.items):
        return "the whole request"
    return "only the denied topics; otherwise the whole request" if has_whole else "only the denied items"


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("permissions", Permissions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
