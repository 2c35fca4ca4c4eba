"""The base class of directives that show a variable as a table.

A directive can show a table that is stored in a variable of a module. The argument of the directive has
the form `module:variable`: the name of the module, a colon, and the name of the variable.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sphinx.util.docutils import SphinxDirective


class TableDirective(SphinxDirective):
    """A directive whose argument names a table, for example `hmb.spark.option_names:SOURCE_OPTIONS`.

    If the file of this module changes, Sphinx builds the page with the directive again.
    """

    required_arguments = 1

    def table(self) -> tuple[Any, str]:
        """Return a table from the code, and the path of the module that contains the table.

        The argument of the directive names the module and the table, for example
        `hmb.spark.option_names:SOURCE_OPTIONS`.
        """
        module_name, _, name = self.arguments[0].partition(":")
        module = import_module(module_name)
        assert module.__file__ is not None
        self.env.note_dependency(module.__file__)
        return getattr(module, name), module.__file__
