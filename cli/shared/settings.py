"""Read settings from `name=value` or from a properties file. Values can have units, which hmb/units.py explains."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from hmb.units import plain_value

from .errors import USAGE, CliError
from .parameters import name_value


def setting(text: str) -> tuple[str, str]:
    """Split `name=value`. Convert a value with a unit to a number, for example `1h` to `3600000` (ms)."""
    name, value = name_value(text)
    try:
        return name, plain_value(name, value)
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: {error}") from None


def read_settings(path: str | Path | None) -> dict[str, str]:
    """Return the settings in a properties file, with units converted to numbers.

    If `path` is None, return an empty dict.

    Raises CliError for a mistake in the file, and OSError if the file cannot be read.
    """
    from hmb.storage.state.properties import PropertiesError, read_properties

    try:
        return {} if path is None else plain_values(read_properties(Path(path)), f"{path}: ")
    except PropertiesError as error:
        raise CliError(str(error)) from error


def plain_values(properties: Mapping[str, str], origin: str) -> dict[str, str]:
    """Return the settings, with units converted to numbers: for example, `1h` becomes `3600000` (ms).

    Raises CliError if a value cannot be converted. The error message begins with `origin`, which says where the
    settings come from, for example the path of a file. The name of the wrong setting follows.
    """
    found = {}
    for name, value in properties.items():
        try:
            found[name] = plain_value(name, value)
        except ValueError as error:
            raise CliError(f"{origin}{name}={value}: {error}", USAGE) from None
    return found
