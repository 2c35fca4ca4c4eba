"""The source of a broker's state for `hmb state`, `hmb top` and `hmb ui`: an address, or a file in a data directory."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import urlopen

import click

from hmb.defaults import DEFAULT_DATA_DIR, STATE_FILE

from ..shared.errors import NOT_FOUND, UNREACHABLE, USAGE, CliError
from ..shared.parameters import NewPath

TIMEOUT = 30  # seconds
State: TypeAlias = dict[str, Any]  # the JSON of hmb.monitoring.state.BrokerState


def source_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a broker's state.

    The command receives the address of the state as the argument `url`.
    """
    for option in (
        click.option(
            "--state-url", envvar="HMB_STATE_URL", help="The address that the broker printed, with its token."
        ),
        click.option(
            "--data-dir",
            type=NewPath(),
            help=f"The broker's data directory, which contains the address.  [default: {DEFAULT_DATA_DIR}]",
        ),
    ):
        function = option(function)
    return function


def find_url(state_url: str | None, data_dir: str | None) -> str:
    """Return the address of a broker's state. Raises CliError."""
    if state_url is not None:
        if data_dir is not None:
            raise click.UsageError("--state-url already names the broker: leave out --data-dir")
        if not state_url.startswith("http://"):
            raise CliError(f"--state-url {state_url!r} is no address of a broker; copy the line that it printed", USAGE)
        return state_url
    return _address_in(data_dir, "state", "--state 0")


def find_page(state_url: str | None, data_dir: str | None) -> str:
    """Return the link to a broker's page. Raises CliError.

    The page and the state have the same token, so the address of the state at the port of the page is also enough.
    """
    if state_url is None:
        return _address_in(data_dir, "ui", "--ui")
    parts = urlsplit(find_url(state_url, data_dir))
    return urlunsplit(parts._replace(path="/"))


def _address_in(data_dir: str | None, name: str, option: str) -> str:
    """Return an address from the file that a broker has written into its data directory. Raises CliError."""
    path = Path(data_dir or DEFAULT_DATA_DIR) / STATE_FILE
    what = {"state": "its state", "ui": "a page"}[name]
    hint = f"start the broker with `hmb broker {option}`, or name it with --data-dir or --state-url"
    try:
        found: str | None = json.loads(path.read_text(encoding="utf-8")).get(name)
    except FileNotFoundError:
        raise CliError(f"no broker serves {what} from {path.parent}: {hint}", NOT_FOUND) from None
    except (OSError, ValueError, AttributeError) as error:
        raise CliError(f"cannot read the address in {path}: {error}") from error
    if found is None:
        raise CliError(f"the broker with the data directory {path.parent} serves no page: {hint}", NOT_FOUND)
    return found


def fetch_state(url: str) -> State:
    """Fetch the state of a broker. Raises CliError."""
    try:
        with urlopen(url, timeout=TIMEOUT) as response:
            state: State = json.load(response)
    except HTTPError as error:
        raise CliError(_reason(error), USAGE) from error
    except (URLError, OSError, http.client.HTTPException, ValueError) as error:
        where = url.partition("?")[0]
        why = error.reason if isinstance(error, URLError) else error
        raise CliError(f"no broker serves its state at {where}: {why}", UNREACHABLE) from error
    return state


def _reason(error: HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the server responded with status {error.code}; is this the address that the broker printed?"
