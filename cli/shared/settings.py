"""Settings that a command is given: `name=value`, or a properties file. Values may have units, as in hmb/units.py."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from hmb.units import plain_value

from .errors import USAGE, CliError
from .parameters import name_value


def setting(text: str) -> tuple[str, str]:
    """Split `name=value`, and convert a value with a unit to Kafka's number."""
    name, value = name_value(text)
    try:
        return name, plain_value(name, value)
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: {error}") from None


def read_settings(path: str | Path | None) -> dict[str, str]:
    """Return the settings of a properties file, with Kafka's numbers; an empty dict if `path` is None.

    Raises CliError and OSError.
    """
    from hmb.storage.state.properties import PropertiesError, read_properties

    try:
        return {} if path is None else plain_values(read_properties(Path(path)), f"{path}: ")
    except PropertiesError as error:
        raise CliError(str(error)) from error


def plain_values(properties: Mapping[str, str], origin: str) -> dict[str, str]:
    """Return the settings with units converted to plain numbers, for example `1h` to `3600000`.

    Raises CliError, which names the setting and its origin.
    """
    found = {}
    for name, value in properties.items():
        try:
            found[name] = plain_value(name, value)
        except ValueError as error:
            raise CliError(f"{origin}{name}={value}: {error}", USAGE) from None
    return found
