"""`hmb hailstorm registry`: serves a registry for processors that run in processes of their own."""

from __future__ import annotations

import threading

import click

from .arguments import AddressType


@click.command()
@click.option(
    "--listen", type=AddressType(), default="127.0.0.1:4181", show_default=True,
    help="The address at which processors connect.",
)
@click.option(
    "--session-timeout",
    type=click.FloatRange(min=0.2),
    default=5.0,
    show_default=True,
    help="Seconds without a heartbeat after which the registry removes a processor.",
)
def command(listen: tuple[str, int], session_timeout: float) -> None:
    """Serve a registry until Ctrl-C.

    Every program that can connect may change the registry, so use a private network.
    """
    from hmb.hailstorm.registry import LocalRegistry, RegistryServer

    server = RegistryServer(LocalRegistry(), *listen, session_timeout=session_timeout)
    click.echo(f"registry at {server.address[0]}:{server.address[1]}", err=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.close()
