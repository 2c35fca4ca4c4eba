"""`hmb hailstorm registry`: run a registry, through which processors in separate processes find each other."""

from __future__ import annotations

import threading

import click

from hmb.defaults import DEFAULT_HOST, REGISTRY_SESSION_TIMEOUT

from .arguments import AddressType


@click.command("registry")
@click.option(
    "--listen", type=AddressType(), default=f"{DEFAULT_HOST}:4181", show_default=True,
    help="The address to which processors connect.",
)
@click.option(
    "--session-timeout",
    type=click.FloatRange(min=0.2),
    default=REGISTRY_SESSION_TIMEOUT,
    show_default=True,
    help="The registry removes a processor after this number of seconds without a heartbeat.",
)
def command(listen: tuple[str, int], session_timeout: float) -> None:
    """Run a registry until Ctrl-C. Processors that run in separate processes find each other through the registry.

    Every program that can connect to the registry can also change it. Therefore run it only in a private network.
    """
    from hmb.hailstorm.registry import LocalRegistry, RegistryServer

    server = RegistryServer(LocalRegistry(), *listen, session_timeout=session_timeout)
    click.echo(f"registry at {server.address[0]}:{server.address[1]}", err=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.close()
