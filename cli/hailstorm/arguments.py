"""Arguments that several commands of `hmb hailstorm` have, and a function that shows an error as one line."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..shared.errors import ERROR, NOT_FOUND, UNREACHABLE, CliError
from ..shared.parameters import NewPath

if TYPE_CHECKING:
    from hmb.hailstorm.registry import Registry

REGISTRY_CONNECT_TIMEOUT = 5.0  # seconds

topology_argument = click.argument("topology", metavar="MODULE:NAME")
workers_option = click.option(
    "--workers", type=click.IntRange(min=1),
    help="The number of worker processes. Without this option, the topology runs in threads of one process.",
)
quiet_option = click.option("--quiet", is_flag=True, help="Show no live display.")
store_argument = click.argument("store", type=NewPath(path_type=Path), metavar="STORE")


class AddressType(click.ParamType[tuple[str, int]]):
    """The type of an option whose value is `host:port`."""

    name = "HOST:PORT"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return str(value[0]), int(value[1])
        host, _, port = str(value).rpartition(":")
        if not host or not port.isdecimal():
            self.fail(f"{value!r} is not of the form host:port", param, ctx)
        return host, int(port)


@contextmanager
def errors_as_lines() -> Iterator[None]:
    """If Hailstorm raises an error in the `with` block, raise a CliError instead.

    The user then sees one line, and no traceback.
    """
    from hmb.hailstorm.errors import HailstormError
    from hmb.protocol.errors import ErrorCode, KafkaError

    try:
        yield
    except HailstormError as error:
        why = error.__cause__
        is_missing = isinstance(why, KafkaError) and why.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise CliError(str(error), NOT_FOUND if is_missing else ERROR) from error


def registry_file(store: Path) -> Path:
    """Return the path of the file with the registry's address.

    `hmb hailstorm run` writes this file beside the snapshot store. Other commands read this file to find the running
    topology.
    """
    return store / "registry.json" if store.is_dir() else store.with_name(store.name + ".registry.json")


def refuse_second_run(store: Path) -> None:
    """Raise CliError if another `hmb hailstorm run` uses the snapshot store `store` at this moment.

    If two runs used the same store, each of them would begin new epochs, and refuse the snapshots of the other run.
    """
    path = registry_file(store)
    try:
        host, port = json.loads(path.read_text(encoding="utf-8"))
        socket.create_connection((host, port), REGISTRY_CONNECT_TIMEOUT).close()
    except (OSError, ValueError):  # No file exists, or the process that wrote the file was killed.
        return
    what = f"another `hmb hailstorm run` uses the store {store}: the registry in {path} answers"
    raise CliError(f"{what}. Stop this run first, or name another store with --store")


def connect(address: tuple[str, int] | None, zookeeper: str | None, name: str) -> Registry:
    """Connect to the registry at `address`, or to the registry of the topology `name` in ZooKeeper.

    Raises CliError if no registry responds.
    """
    if zookeeper is not None:
        from hmb.hailstorm.registry.zookeeper import ZooKeeperRegistry

        return ZooKeeperRegistry(zookeeper, name)
    from hmb.hailstorm.registry import RemoteRegistry

    if address is None:
        raise CliError("--processor needs a registry: --registry HOST:PORT, or --zookeeper HOSTS", 2)
    try:
        socket.create_connection(address, REGISTRY_CONNECT_TIMEOUT).close()
    except OSError as error:
        what = f"no registry answers at {address[0]}:{address[1]} ({error.strerror})"
        raise CliError(f"{what}; start one with `hmb hailstorm registry`", UNREACHABLE) from error
    return RemoteRegistry(address)


def running_registry(store: Path) -> tuple[str, int]:
    """Find the running topology that stores its snapshots in `store`. Return the address of its registry.

    The registry is a server through which other commands read the state of the topology. Raises CliError if no running
    topology uses `store`.
    """
    path = registry_file(store)
    try:
        host, port = json.loads(path.read_text(encoding="utf-8"))
        socket.create_connection((host, port), REGISTRY_CONNECT_TIMEOUT).close()
    except (OSError, ValueError) as error:
        killed = "" if isinstance(error, FileNotFoundError) else " (the last run did not end normally)"
        what = f"no topology that `hmb hailstorm run` started uses {store}{killed}"
        raise CliError(f"{what}; `hmb hailstorm snapshots {store}` lists its snapshots", UNREACHABLE) from None
    return host, port
