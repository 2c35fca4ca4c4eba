"""What directives that show a table of the code have in common: they are told where it is, `module:name`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sphinx.util.docutils import SphinxDirective


class TableDirective(SphinxDirective):
    """One argument, `module:name`; the page is made anew when the module changes."""

    required_arguments = 1

    def table(self) -> tuple[Any, str]:
        """What has that name, and the file that it is in."""
        module_name, _, name = self.arguments[0].partition(":")
        module = import_module(module_name)
        assert module.__file__ is not None
        self.env.note_dependency(module.__file__)
        return getattr(module, name), module.__file__
