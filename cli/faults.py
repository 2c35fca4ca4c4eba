"""`hmb faults`: add and remove faults in a broker, and print the requests that clients have sent.

The broker must run with the option `--faults` or `--embedded`.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any

import click

from hmb.defaults import CORRUPT_PATH, CUTS, DISK_FAULT_KINDS, FAULTS_PATH, REQUESTS_PATH

from .shared.errors import UNREACHABLE, USAGE, CliError
from .shared.output import print_json
from .shared.parameters import IntRange

TIMEOUT = 30  # seconds


@click.group()
def command() -> None:
    """Make a broker fail, for a test.

    First start `hmb broker --faults FILE`. This broker prints the address of its control port and a token. The commands
    of this group need the address and the token.
    """


def _port_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--token", envvar="HMB_CONTROL_TOKEN", required=True, help="The token that the broker printed."),
        click.option(
            *("--control", "address"),
            envvar="HMB_CONTROL",
            metavar="HOST:PORT",
            required=True,
            help="The address of the control port, which the broker printed.",
        ),
    ):
        function = option(function)
    return function


@command.command()
@click.argument("api")
@click.option("--topic", help="Apply the fault only to requests that name this topic.")
@click.option("--partition", type=IntRange(0), help="Apply the fault only to requests for this partition of the topic.")
@click.option("--client-id", help="Apply the fault only to requests with this client id.")
@click.option(
    "--nth", type=IntRange(1),
    help="The position of the first request that gets the fault: for example, 3 skips two requests.  [default: 1]",
)
@click.option(
    "--times", type=IntRange(1), help="The maximum number of requests that get the fault.  [default: no limit]"
)
@click.option("--error", help="Respond with this error code, for example NOT_LEADER_OR_FOLLOWER.")
@click.option(
    "--takes-effect", is_flag=True, default=None,
    help="With --error: also handle the request. By default, the broker only responds with the error.",
)
@click.option("--delay", type=float, help="The delay (seconds) before the broker handles the request.")
@click.option("--drop", is_flag=True, default=None, help="Send no response.")
@click.option(
    "--cut", type=click.Choice(CUTS), help="Close the connection before or after handling the request."
)
@click.option("--throttle-ms", type=IntRange(0), help="Send this throttle time (ms) in the response.")
@_port_options
def add(address: str, token: str, **fault: Any) -> None:
    """Add a fault: change how the broker handles one request type. API is the type, for example PRODUCE."""
    _print(_ask("POST", address, token, _given(fault)))


@command.command()
@click.argument("kind", type=click.Choice(DISK_FAULT_KINDS))
@click.option("--topic", help="Apply the fault only to the log files of this topic.")
@click.option("--seconds", type=float, help="Only for a slow disk: the delay (seconds) of each write and each sync.")
@_port_options
def disk(address: str, token: str, kind: str, **fault: Any) -> None:
    """Simulate a disk that is full, failing or slow. The command `hmb faults clear` ends the simulation."""
    _print(_ask("POST", address, token, {"disk": kind} | _given(fault)))


@command.command()
@click.argument("topic")
@click.option("--partition", type=IntRange(0), help="The partition of the batch.  [default: 0]")
@click.option("--offset", type=IntRange(0), help="The offset of any record in the batch.  [default: 0]")
@_port_options
def corrupt(address: str, token: str, **batch: Any) -> None:
    """Change one byte of a record batch on the disk, so that the CRC of the batch is wrong."""
    _ask("POST", address, token, _given(batch), path=CORRUPT_PATH)


@command.command("list")
@_port_options
def list_faults(address: str, token: str) -> None:
    """Print one JSON object for each fault. Its `count` is the number of requests that the fault has changed."""
    _print(_ask("GET", address, token))


@command.command()
@_port_options
def clear(address: str, token: str) -> None:
    """Remove all faults."""
    _print(_ask("DELETE", address, token))


@command.command()
@click.option("--clear", is_flag=True, help="Delete the recorded requests instead of printing them.")
@_port_options
def requests(address: str, token: str, clear: bool) -> None:
    """Print the requests that clients have sent, one JSON object per line. The oldest request comes first.

    The broker starts to record requests when you use this command for the first time. So use the command before
    your client sends its requests, and use it again afterwards.
    """
    if clear:
        _ask("DELETE", address, token, path=REQUESTS_PATH)
        click.echo("The broker has deleted the recorded requests.")
    else:
        _print(_ask("GET", address, token, path=REQUESTS_PATH))


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return only the options that the user has written on the command line."""
    return {name: value for name, value in options.items() if value is not None}


def _print(objects: list[dict[str, Any]]) -> None:
    for each in objects:
        print_json(each)


def _ask(
    method: str, address: str, token: str, fault: dict[str, Any] | None = None, *, path: str = FAULTS_PATH
) -> list[dict[str, Any]]:
    """Send one request to the control port, and return the JSON objects in the response.

    Raises CliError if the control port does not respond, or if it responds with an error.
    """
    body = None if fault is None else json.dumps(fault)
    try:
        connection = http.client.HTTPConnection(address, timeout=TIMEOUT)
        connection.request(method, path, body, {"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise CliError(f"no control port answers at {address}: {error}", UNREACHABLE) from error
    if response.status != http.client.OK:
        raise CliError(answer["error"], USAGE)
    result: list[dict[str, Any]] = answer
    return result
