"""`hmb profile`: create, list, choose and delete profiles. `shared/profiles.py` explains what a profile is."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

from .shared import profiles
from .shared.errors import CliError
from .shared.output import json_option, print_json, print_rows
from .shared.parameters import servers
from .shared.settings import setting

LEGAL_NAME = re.compile(r"[\w.-]*\w[\w.-]*", re.ASCII)


@click.group()
def command() -> None:
    """Store addresses of clusters, and choose the one that all commands use.

    A profile is a file with the settings of a client, in Kafka's format. If a command has the option -b, or if the
    environment variable HMB_BOOTSTRAP_SERVERS is set, the command does not use the address in the profile.
    """


def name_of_profile(text: str) -> str:
    """Return the text if it can be the name of a profile. Otherwise, raise click.BadParameter."""
    if not LEGAL_NAME.fullmatch(text) or text.startswith("."):
        allowed = "a name contains only letters, digits, '.', '_' and '-', and does not begin with '.'"
        raise click.BadParameter(f"{text!r} is not a profile's name; {allowed}")
    return text


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in profiles.names() if name.startswith(incomplete)]


def _name_argument(**options: object) -> Callable[..., Callable[..., None]]:
    return click.argument("name", type=name_of_profile, shell_complete=_complete, **options)  # type: ignore[arg-type]


@command.command()
@_name_argument()
@click.option(
    "-b", "--bootstrap-server", "address", type=servers, metavar="HOST:PORT",
    help="The addresses of the cluster's brokers.",
)
@click.option(
    "-X", "settings", type=setting, multiple=True, metavar="NAME=VALUE",
    help="A setting of the client. NAME is the name that Kafka uses, for example security.protocol.",
)
def create(name: str, address: str | None, settings: tuple[tuple[str, str], ...]) -> None:
    """Create the profile NAME, and make it the current profile. A profile that already has this NAME is replaced."""
    named = {} if address is None else {profiles.SERVERS_SETTING: address}
    lines = [f"{setting_name}={_escaped(value)}\n" for setting_name, value in (dict(settings) | named).items()]
    if not lines:
        raise click.UsageError("a profile needs an address (-b) or a setting (-X)")
    path = profiles.path_of(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")
    profiles.choose(name)
    click.echo(f"created profile {name} in {path}; it is the current profile now")


def _escaped(value: str) -> str:
    """Return a value with each backslash doubled, because a single backslash begins an escape in a properties file."""
    return value.replace("\\", "\\\\")


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List all profiles."""
    current = profiles.current()
    rows = [
        {"profile": name, "current": name == current, "servers": profiles.read(name).get(profiles.SERVERS_SETTING)}
        for name in profiles.names()
    ]
    shown = [row | {"current": "*" if row["current"] else ""} for row in rows]
    print_rows(("profile", "current", "servers"), rows if as_json else shown, as_json)


@command.command()
@_name_argument(required=False)
@json_option
def describe(name: str | None, as_json: bool) -> None:
    """Show the settings of the profile NAME, or of the current profile."""
    name = name or profiles.current()
    if name is None:
        raise CliError("no current profile is set; choose one with `hmb profile use NAME`")
    properties = profiles.read(name)
    if as_json:
        print_json({"profile": name, "path": profiles.path_of(name), "settings": properties})
        return
    click.echo(f"profile {name}, {profiles.path_of(name)}")
    for setting_name, value in properties.items():
        click.echo(f"{setting_name}={value}")


@command.command()
@_name_argument()
def use(name: str) -> None:
    """Make NAME the current profile."""
    profiles.read(name)
    profiles.choose(name)
    click.echo(f"profile {name} is the current profile now")


@command.command()
def clear() -> None:
    """Stop using the current profile. This command deletes no profile."""
    profiles.choose(None)
    click.echo("no profile is the current profile now")


@command.command()
@_name_argument()
def delete(name: str) -> None:
    """Delete the profile NAME."""
    profiles.read(name)
    profiles.path_of(name).unlink()
    if profiles.current() == name:
        profiles.choose(None)
    click.echo(f"deleted profile {name}")
