"""`TableDirective` is the base class of directives that show Python variables as tables.

A directive of the class `TableDirective` has one argument of the form `module:variable`: the name of a module,
a colon, and the name of a variable in this module.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sphinx.util.docutils import SphinxDirective


class TableDirective(SphinxDirective):
    """A directive whose argument names a table, for example `hmb.spark.option_names:SOURCE_OPTIONS`.

    If the file of the module (here `hmb.spark.option_names`) changes, Sphinx builds the page again.
    """

    required_arguments = 1

    def table(self) -> tuple[Any, str]:
        """Return the variable in the directive's argument `module:variable`, and the path of the module."""
        module_name, _, name = self.arguments[0].partition(":")
        module = import_module(module_name)
        assert module.__file__ is not None
        self.env.note_dependency(module.__file__)
        return getattr(module, name), module.__file__
