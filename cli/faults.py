"""`hmb faults`: the faults and the requests of a broker that runs with `hmb broker --faults` or `--embedded`."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any

import click

from .shared.errors import UNREACHABLE, USAGE, CliError
from .shared.output import print_json
from .shared.parameters import IntRange

TIMEOUT = 30  # seconds


@click.group()
def command() -> None:
    """Make a broker fail, for a test.

    `hmb broker --faults FILE` prints the address of its control port and a token.
    """


def _port_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--token", envvar="HMB_CONTROL_TOKEN", required=True, help="The token that the broker printed."),
        click.option(
            *("--control", "address"),
            envvar="HMB_CONTROL",
            metavar="HOST:PORT",
            required=True,
            help="The control port that the broker printed.",
        ),
    ):
        function = option(function)
    return function


@command.command()
@click.argument("api")
@click.option("--topic", help="Only requests that name this topic.")
@click.option("--partition", type=IntRange(0), help="Only this partition of the topic.")
@click.option("--client-id", help="Only requests of this client.")
@click.option("--nth", type=IntRange(1), help="The number of the first request that fails.  [default: 1]")
@click.option("--times", type=IntRange(1), help="How many requests fail.  [default: all]")
@click.option("--error", help="Answer this error code, for example NOT_LEADER_OR_FOLLOWER.")
@click.option("--takes-effect", is_flag=True, default=None, help="With --error: the request takes effect anyway.")
@click.option("--delay", type=float, help="Handle the request after this time (seconds).")
@click.option("--drop", is_flag=True, default=None, help="Send no response.")
@click.option("--cut", type=click.Choice(["before", "after"]), help="Close the connection before or after the effect.")
@click.option("--throttle-ms", type=IntRange(0), help="Report this throttle time (ms).")
@_port_options
def add(address: str, token: str, **fault: Any) -> None:
    """Add a fault for the requests of an API, for example PRODUCE or JOIN_GROUP."""
    _print(_ask("POST", address, token, _given(fault)))


@command.command()
@click.argument("kind", type=click.Choice(["full", "failing", "slow"]))
@click.option("--topic", help="Only the files of this topic.")
@click.option("--seconds", type=float, help="With slow: the wait before each write and each sync (seconds).")
@_port_options
def disk(address: str, token: str, kind: str, **fault: Any) -> None:
    """Make the disk full, failing or slow, until `hmb faults clear`."""
    _print(_ask("POST", address, token, {"disk": kind} | _given(fault)))


@command.command()
@click.argument("topic")
@click.option("--partition", type=IntRange(0), help="The partition.  [default: 0]")
@click.option("--offset", type=IntRange(0), help="An offset in the batch.  [default: 0]")
@_port_options
def corrupt(address: str, token: str, **batch: Any) -> None:
    """Change one byte of a batch on the disk, so that its CRC is wrong."""
    _ask("POST", address, token, _given(batch), path="/corrupt")


@command.command("list")
@_port_options
def list_faults(address: str, token: str) -> None:
    """Print the faults, one JSON object a line. `count` is the number of requests that a fault has changed."""
    _print(_ask("GET", address, token))


@command.command()
@_port_options
def clear(address: str, token: str) -> None:
    """Remove all faults."""
    _print(_ask("DELETE", address, token))


@command.command()
@click.option("--clear", is_flag=True, help="Forget the recorded requests.")
@_port_options
def requests(address: str, token: str, clear: bool) -> None:
    """Print the requests of clients, one JSON object a line, oldest first.

    The broker records requests from the first use of this command on.
    """
    _print(_ask("DELETE" if clear else "GET", address, token, path="/requests"))


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return those options that the user has named on the command line, without the others' defaults."""
    return {name: value for name, value in options.items() if value is not None}


def _print(objects: list[dict[str, Any]]) -> None:
    for each in objects:
        print_json(each)


def _ask(
    method: str, address: str, token: str, fault: dict[str, Any] | None = None, *, path: str = "/faults"
) -> list[dict[str, Any]]:
    """Send one request to the control port, and return the objects in its response. Raises CliError."""
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
