"""Profiles: files with the address of a cluster and with settings for its clients.

A user should not have to type the address of a cluster in each command. The user stores the address in a profile, and
makes one profile the current profile. All commands that talk to a cluster use the current profile. A profile has the
format of Kafka's `client.properties`, so Kafka's tools can also read it:
    ~/.config/hmb/profiles/home.properties     bootstrap.servers=192.168.1.20:9092
                                               client.id=laptop
    ~/.config/hmb/current-profile              home

If the environment variable XDG_CONFIG_HOME is set, `hmb` stores the profiles in the directory `$XDG_CONFIG_HOME/hmb`
in place of `~/.config/hmb`.

A command looks for the address of its cluster in these places, and uses the first address that it finds:
1. the option `-b`
2. `bootstrap.servers` in `-X`, or in the file of `--config`
3. the environment variable HMB_BOOTSTRAP_SERVERS
4. the current profile
5. 127.0.0.1:9092
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from hmb import defaults

from .errors import NOT_FOUND, CliError
from .parameters import servers
from .settings import read_settings

SERVERS_SETTING = "bootstrap.servers"


def directory() -> Path:
    """Return the directory in which `hmb` stores the profiles of this user."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "hmb"


def path_of(name: str) -> Path:
    """Return the path of the file for a profile. The function does not check whether the file exists."""
    return directory() / "profiles" / f"{name}.properties"


def names() -> list[str]:
    """Return the names of all profiles, in alphabetical order."""
    return sorted(path.stem for path in (directory() / "profiles").glob("*.properties"))


def current() -> str | None:
    """Return the name of the current profile, or None if no profile is current."""
    try:
        return _current_file().read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None


def choose(name: str | None) -> None:
    """Make `name` the current profile. If `name` is None, no profile is current afterwards."""
    if name is None:
        _current_file().unlink(missing_ok=True)
    else:
        _current_file().write_text(name + "\n", encoding="utf-8")


def read(name: str) -> dict[str, str]:
    """Return the settings in a profile. Raises CliError if the profile does not exist or cannot be read."""
    try:
        return read_settings(path_of(name))
    except FileNotFoundError:
        raise CliError(f"no profile {name!r} exists; `hmb profile list` shows all profiles", NOT_FOUND) from None


def current_properties() -> dict[str, str]:
    """Return the settings in the current profile, or an empty dict if no profile is current."""
    name = current()
    return {} if name is None else read(name)


def default_servers() -> str:
    """Return the address of the cluster for a command without -b.

    Raises click.UsageError if the text in HMB_BOOTSTRAP_SERVERS or in the profile is not an address.
    """
    places = {
        defaults.SERVERS_VARIABLE: os.environ.get(defaults.SERVERS_VARIABLE),
        f"profile {current()!r}": current_properties().get(SERVERS_SETTING),
    }
    for place, text in places.items():
        if text:
            try:
                return servers(text)
            except click.BadParameter as error:
                raise click.UsageError(f"{place}: {error.message}") from None
    return defaults.DEFAULT_SERVER


def _current_file() -> Path:
    return directory() / "current-profile"
