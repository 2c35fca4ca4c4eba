"""The base class of directives that show a table from the code.

The argument of a directive that shows a table names the module and the variable of the table. A colon separates the
two names: `module:variable`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sphinx.util.docutils import SphinxDirective


class TableDirective(SphinxDirective):
    """A directive whose argument is the Python name of a table.

    When the module that defines the table changes, Sphinx builds the page again.
    """

    required_arguments = 1

    def table(self) -> tuple[Any, str]:
        """Return the table that the directive's argument names, and the path of the module with the table."""
        module_name, _, name = self.arguments[0].partition(":")
        module = import_module(module_name)
        assert module.__file__ is not None
        self.env.note_dependency(module.__file__)
        return getattr(module, name), module.__file__
