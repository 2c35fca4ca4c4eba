"""`hmb certs`: make certificates for tests."""

from __future__ import annotations

from pathlib import Path

import click

from ..shared.errors import CliError
from ..shared.output import json_option, print_json
from ..shared.parameters import IntRange, NewPath


@click.group()
def command() -> None:
    """Make certificates for tests of TLS."""


@command.command()
@click.argument("directory", type=NewPath())
@click.option("--host", "hosts", multiple=True, help="A name or address of the broker.  [default: this computer]")
@click.option("--client", default="client", show_default=True, help="The name of the client.")
@click.option("--days", type=IntRange(1, 36500), default=365, show_default=True, help="The validity in days.")
@json_option
def make(directory: str, hosts: tuple[str, ...], client: str, days: int, as_json: bool) -> None:
    """Make certificates in DIRECTORY: for a new certificate authority, a broker and a client.

    The broker uses broker.pem as its key store, and authority.pem as its trust store. A client uses client.pem and
    authority.pem. The command needs the program openssl.
    """
    from hmb.security.certificates import HOSTS, CertificateError, make

    try:
        made = make(Path(directory), hosts or HOSTS, client=client, days=days)
    except CertificateError as error:
        raise CliError(str(error)) from error
    if as_json:
        print_json(made._asdict())
        return
    click.echo(f"{made.authority}  the authority's certificate: ssl.truststore.location")
    click.echo(f"{made.broker}  the broker's key and certificate: ssl.keystore.location of the broker")
    click.echo(f"{made.client}  a client's key and certificate: ssl.keystore.location of a client")
