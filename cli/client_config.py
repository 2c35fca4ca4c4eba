"""`-X linger.ms=5` and `--config client.properties`: the client's settings under Kafka's names.

What these are stands in `hmb.client.settings`. A file of Kafka's tools can be given as it is: what is no setting of
these clients gets a warning with the nearest that is.
"""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from hmb.client.settings import Setting, SettingError, keywords

from .common import USAGE, CliError, NewPath, name_value
from .option_groups import OTHER, under


def settings_option(*synonyms: str) -> Any:
    """-X name=value; the synonyms are what Kafka's tools call it."""
    return under(OTHER)(
        "-X",
        "settings",
        synonyms=synonyms,
        type=name_value,
        multiple=True,
        metavar="NAME=VALUE",
        help="A setting of the client, as in Kafka.",
    )


def config_option(*synonyms: str) -> Any:
    """--config FILE, as kafka-console-consumer has --consumer.config."""
    return under(OTHER)(
        "--config",
        "config",
        synonyms=synonyms,
        type=NewPath(),
        metavar="FILE",
        help="A client.properties file as Kafka has them.",
    )


def client_keywords(
    known: Mapping[str, Setting], config: str | None, given: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    """The keywords for a client; what is given with -X wins over the file."""
    from hmb.storage.properties import PropertiesError, read_properties

    try:
        properties = {} if config is None else read_properties(Path(config))
    except PropertiesError as error:
        raise CliError(str(error)) from error
    origins = dict.fromkeys(properties, f"{config}: ") | {name: "-X " for name, _ in given}
    try:
        found = keywords(known, properties | dict(given))
    except SettingError as error:
        raise CliError(f"{origins[error.name]}{error}", USAGE) from None
    for name in found.unknown:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        click.echo(f"hmb: {origins[name]}{name}: unknown setting, ignored{hint}", err=True)
    return found.keywords
