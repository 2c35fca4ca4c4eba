"""`-X linger.ms=5` and `--config client.properties`: the client's settings under Kafka's names.

What these are stands in `hmb.client.settings`. A file of Kafka's tools can be given as it is: what is no setting of
these clients gets a warning with the nearest that is.
"""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hmb.client.consuming.settings import CONSUMER
from hmb.client.producing.settings import PRODUCER
from hmb.client.settings import Setting, SettingError, keywords

from .common import USAGE, CliError, NewPath, name_value
from .option_groups import OTHER, under

ALL = PRODUCER | CONSUMER


def settings_option(known: Mapping[str, Setting], *synonyms: str) -> Any:
    """-X name=value, and Tab completes the names that do something; the synonyms are what Kafka's tools call it."""
    names = sorted(name for name, setting in known.items() if setting.keyword)

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        return [f"{name}=" for name in names if f"{name}=".startswith(incomplete)]

    return under(OTHER)(
        "-X",
        "settings",
        synonyms=synonyms,
        type=name_value,
        multiple=True,
        metavar="NAME=VALUE",
        shell_complete=complete,
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
    given_names = {name for name, _ in given}
    origins = dict.fromkeys(properties, f"{config}: ") | dict.fromkeys(given_names, "-X ")
    try:
        found = keywords(known, properties | dict(given))
    except SettingError as error:
        raise CliError(f"{origins[error.name]}{error}", USAGE) from None
    for name in found.unknown:
        if name not in given_names and name in ALL:
            continue  # a file may be of a producer and of a consumer
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        click.echo(f"hmb: {origins[name]}{name}: unknown setting, ignored{hint}", err=True)
    return found.keywords


def chosen_servers(keywords: dict[str, Any], servers: str, given: tuple[tuple[str, str], ...]) -> str:
    """The brokers to start from, taken out of the keywords: those of -b, else of -X, else of the file."""
    named: str = keywords.pop("bootstrap_servers", servers)
    if click.get_current_context().get_parameter_source("servers") is ParameterSource.DEFAULT:
        return named
    if dict(given).get("bootstrap.servers", servers) != servers:
        raise click.UsageError(f"-b {servers} and -X bootstrap.servers={named} exclude each other")
    return servers
