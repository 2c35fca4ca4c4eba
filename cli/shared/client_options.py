"""The options of every command that talks to a cluster: `-b`, `-X` and `--config`.

The decorator `client_options` adds the options `-b`, `-X` and `--config` to a command. The command receives the
values of these options as one `ClientConfig`. The settings of HMB's clients have Kafka's names
(`hmb.client.settings`), so a file for Kafka's own tools can be used unchanged. The command ignores a setting
that HMB's clients do not have, and prints a warning. If another setting has a similar name, the warning
suggests it.

The value of a setting can come from `-X`, from the file of `--config`, or from the current profile. `-X` takes
precedence over the file, and the file takes precedence over the profile. The module `profiles` explains where a command
finds the address of the cluster.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hmb.defaults import DEFAULT_SERVER, SERVERS_VARIABLE

from . import profiles
from .errors import USAGE, CliError
from .headings import OTHER, under
from .output import json_option
from .parameters import NewPath, servers
from .settings import read_settings, setting
from .waiting_notice import notice_about

if TYPE_CHECKING:
    from hmb.client import Admin
    from hmb.client.settings import Setting

Command = Callable[..., Any]

def servers_option(*synonyms: str) -> Callable[[Command], Command]:
    """Add the option `-b` to a command that takes `servers: str`. `synonyms` are further names of the option."""
    return click.option(
        "-b",
        *synonyms,
        "--bootstrap-server",
        "servers",
        type=servers,
        metavar="HOST:PORT",
        default=profiles.default_servers,
        show_default=f"{SERVERS_VARIABLE}, the current profile, {DEFAULT_SERVER}",
        help="The broker to connect to first, or several brokers separated by commas.",
    )


@dataclass(frozen=True)
class ClientConfig:
    """The address of the cluster that a command uses, and the keyword arguments for its client."""

    servers: str
    keywords: Mapping[str, Any]

    @contextmanager
    def admin(self) -> Iterator[Admin]:
        """Open an `Admin` for a few requests.

        If the `with` block takes longer than three seconds, the user sees a line on standard error. It says that the
        command is waiting for the broker.
        """
        with notice_about(self.servers), self.unwatched_admin() as admin:
            yield admin

    def unwatched_admin(self) -> Admin:
        """Return an `Admin` that prints nothing while it waits.

        A command that shows its own progress uses this `Admin`.
        """
        from hmb.client import Admin

        return Admin(self.servers, **self.keywords)


def admin_settings() -> Mapping[str, Setting]:
    """Return the settings of an `hmb.Admin`. The keys of the result are Kafka's names of the settings.

    A global import would slow down `--help`, so this function imports the client.
    """
    from hmb.client.settings import COMMON

    return COMMON


def security_settings() -> Mapping[str, Setting]:
    """Return the settings of TLS and SASL, and the setting `bootstrap.servers`.

    The keys of the result are Kafka's names. A command with `@client_options(security_settings)` ignores all other
    settings.
    """
    from hmb.client.settings import COMMON, SECURITY

    return {name: setting for name, setting in COMMON.items() if setting.keyword in (SECURITY, "bootstrap_servers")}


def producer_settings() -> Mapping[str, Setting]:
    """Return the settings of an `hmb.Producer`. The keys of the result are Kafka's names of the settings."""
    from hmb.client.producing.settings import PRODUCER_SETTINGS

    return PRODUCER_SETTINGS


def consumer_settings() -> Mapping[str, Setting]:
    """Return the settings of an `hmb.Consumer`. The keys of the result are Kafka's names of the settings."""
    from hmb.client.consuming.settings import CONSUMER_SETTINGS

    return CONSUMER_SETTINGS


def client_options(
    known: Callable[[], Mapping[str, Setting]] = admin_settings,
    *,
    config: Sequence[str] = ("--command-config",),
    synonyms: Sequence[str] = (),
    server_synonyms: Sequence[str] = (),
) -> Callable[[Command], Command]:
    """Return a decorator that adds three options to a command: `-b`, `-X`, and one for a settings file.

    The decorated function must have the parameter `client: ClientConfig`, which receives the values of these
    options.

    - `known` is a function. It returns the settings that the user can set with `-X` or in the settings file.
    - `config` contains one or more names of the option for the settings file. `--help` shows only the first name.
    - `synonyms` contains more names for the option `-X`. `--help` does not show them.
    - `server_synonyms` contains more names for the option `-b`.
    """

    def decorate(command: Command) -> Command:
        @servers_option(*server_synonyms)
        @under(OTHER)("-X", "settings", synonyms=synonyms, type=setting, multiple=True, metavar="NAME=VALUE",
            shell_complete=_complete_names(known), help="A setting of the client, with the same name as in Kafka.")
        @under(OTHER)(config[0], "config", synonyms=config[1:], type=NewPath(), metavar="FILE",
            help="A client.properties file, in the format of Kafka's tools.")
        @functools.wraps(command)
        def run(
            *arguments: Any, servers: str, config: str | None, settings: tuple[tuple[str, str], ...], **options: Any
        ) -> Any:
            return command(*arguments, client=client_config(known(), servers, config, settings), **options)

        return run  # fmt: skip

    return decorate


def cluster_options(command: Command) -> Command:
    """Add options to a command: `--json` sets the parameter `as_json`, and an Admin's options set `client`."""
    return client_options()(json_option(command))


def client_config(
    known: Mapping[str, Setting], servers: str, config: str | None, settings: tuple[tuple[str, str], ...]
) -> ClientConfig:
    """Return the address of the cluster and the settings for its client.

    The address and the settings come from the options of the command and from the current profile. Raises
    click.UsageError if two options contradict each other, and CliError if a setting is wrong.
    """
    found = client_keywords(known, config, settings)
    named: str = found.pop("bootstrap_servers", servers)
    if click.get_current_context().get_parameter_source("servers") is ParameterSource.DEFAULT:
        return ClientConfig(named, found)
    if dict(settings).get(profiles.SERVERS_SETTING, servers) != servers:
        raise click.UsageError(f"-b {servers} and -X bootstrap.servers={named} cannot be combined")
    return ClientConfig(servers, found)


def client_keywords(
    known: Mapping[str, Setting],
    config: str | None,
    given: tuple[tuple[str, str], ...],
    *,
    with_profile: bool = True,
) -> dict[str, Any]:
    """Return the keyword arguments for a client, from the profile, the file `config` and the -X options `given`.

    -X takes precedence over the file, and the file takes precedence over the profile. A command with two clusters
    leaves the profile out, because the profile describes only one cluster.
    """
    from hmb.client.settings import SettingError, keywords

    profile = profiles.current_properties() if with_profile else {}
    properties = {name: text for name, text in profile.items() if name in known}
    properties.pop(profiles.SERVERS_SETTING, None)  # The option -b already has the profile's address as its default.
    origins = dict.fromkeys(properties, f"profile {profiles.current()!r}: ")
    for origin, more in ((f"{config}: ", read_settings(config)), ("-X ", dict(given))):
        properties |= more
        origins |= dict.fromkeys(more, origin)
    try:
        found = keywords(known, properties)
    except SettingError as error:
        origin = origins.get(error.name, "")  # A setting that the user has to add has no origin.
        raise CliError(f"{origin}{error}", USAGE) from None
    for name in found.unknown:
        if origins[name] != "-X " and (name in producer_settings() or name in consumer_settings()):
            continue  # One file often contains the settings of both producers and consumers.
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        click.echo(f"hmb: {origins[name]}{name}: unknown setting, ignored{hint}", err=True)
    return found.keywords


def _complete_names(
    known: Callable[[], Mapping[str, Setting]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        return sorted(f"{name}=" for name, its in known().items() if its.keyword and f"{name}=".startswith(incomplete))

    return complete
