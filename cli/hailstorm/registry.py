"""`hmb hailstorm registry`: a registry for processors that are started one by one."""

from __future__ import annotations

import threading

import click

from .arguments import AddressType


@click.command()
@click.option(
    "--listen", type=AddressType(), default="127.0.0.1:4181", show_default=True, help="Where processors connect."
)
@click.option(
    "--session-timeout",
    type=click.FloatRange(min=0.2),
    default=5.0,
    show_default=True,
    help="Seconds without a heartbeat after which a processor counts as dead.",
)
def command(listen: tuple[str, int], session_timeout: float) -> None:
    """Serve a registry until Ctrl-C.

    The registry believes everybody who can connect: keep it on a private network.
    """
    from hmb.hailstorm.registry import LocalRegistry, RegistryServer

    server = RegistryServer(LocalRegistry(), *listen, session_timeout=session_timeout)
    click.echo(f"registry at {server.address[0]}:{server.address[1]}", err=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.close()
