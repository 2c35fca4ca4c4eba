"""Settings with units: `retention.ms=1h`, `segment.bytes=1MiB`.

Kafka's settings are plain numbers. The unit is in the setting's name: `retention.ms` is in milliseconds,
`log.retention.hours` in hours, `segment.bytes` in bytes. Large numbers of this kind are hard to read and to write:

    retention.ms=604800000      retention.ms=7d
    segment.bytes=1073741824    segment.bytes=1GiB

`setting` accepts values with and without a unit wherever a command takes a setting, and produces Kafka's plain number.
The broker therefore never receives a unit, so the units also work with Apache Kafka. A value without a unit stays
unchanged, and so does a setting whose name shows no unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import click

from .errors import USAGE, CliError
from .parameters import name_value
from .times import UNITS, is_duration, parse_duration

TIME_UNITS = {  # last part of a setting's name -> its unit in ms
    "ms": UNITS["ms"],
    "seconds": UNITS["s"],
    "minutes": UNITS["m"],
    "hours": UNITS["h"],
}
SIZE_NAMES = re.compile(r"(^|\.)bytes(\.per\.second)?$|^batch\.size$|^buffer\.memory$|\.(request|buffer)\.size$")
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s?(Ki|Mi|Gi|Ti|k|K|M|G|T)?B", re.ASCII)
SIZE_UNITS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
SIZE_UNITS |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


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
    """Return settings with Kafka's numbers. Raises CliError with the origin of a value that is wrong."""
    found = {}
    for name, value in properties.items():
        try:
            found[name] = plain_value(name, value)
        except ValueError as error:
            raise CliError(f"{origin}{name}={value}: {error}", USAGE) from None
    return found


def plain_value(name: str, value: str) -> str:
    """Return a setting's value as Kafka writes it. Raises ValueError if the setting's unit cannot express the value."""
    unit = TIME_UNITS.get(name.rpartition(".")[2])
    if unit is not None and is_duration(value):
        return _whole(parse_duration(value), unit, f"{name} is in {name.rpartition('.')[2]}")
    if SIZE_NAMES.search(name) and (size := SIZE.fullmatch(value)) is not None:
        return str(int(float(size[1]) * SIZE_UNITS[size[2] or ""]))
    return value


def _whole(milliseconds: int, unit: int, what: str) -> str:
    if milliseconds % unit:
        raise ValueError(f"{what}, a whole number")
    return str(milliseconds // unit)
