"""`hmb users`: create, list and delete users, and change their passwords."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from hmb.defaults import SCRAM_ITERATIONS, SCRAM_NAMES

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.errors import CliError
from ..shared.output import print_result, print_rows
from ..shared.parameters import IntRange, NewPath
from .passwords import password_options, read_password

LISTED = ("user", "mechanism", "iterations")
mechanism_option = click.option(
    "--mechanism", "mechanisms", type=click.Choice(SCRAM_NAMES, False), multiple=True,
    help="A mechanism with which the user can log in.  [default: both]",
)  # fmt: skip
iterations_option = click.option(
    "--iterations", type=IntRange(*SCRAM_ITERATIONS), default=SCRAM_ITERATIONS[0], show_default=True,
    help="The number of iterations of the password's hash.",
)  # fmt: skip


def new_user_name(text: str) -> str:
    """Return `text` if it is a valid name for a new user. Otherwise raise click.BadParameter.

    Kafka and HMB store any name that a client sends in AlterUserScramCredentials. But HMB refuses the login of a
    user whose name contains a line break. Such a name could add a forged line to the broker's log.
    """
    if not text:
        raise click.BadParameter("the name is empty")
    if not text.isprintable():
        raise click.BadParameter(f"{text!r} contains a control character, so nobody could log in with it")
    return text


@click.group()
def command() -> None:
    """Create, list and delete users, and change their passwords.

    The users log in with SCRAM. A broker asks for a login if its listener uses SASL.
    """


@command.command()
@click.argument("name", type=new_user_name)
@mechanism_option
@iterations_option
@password_options
@click.option("--data-dir", type=NewPath(), help="Write the user into the data directory of a broker that is stopped.")
@cluster_options
def create(
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password: str | None,
    password_file: str | None,
    data_dir: str | None,
    client: ClientConfig,
    as_json: bool,
) -> None:
    """Create the user NAME. The command asks for the password.

    If nobody can log in yet because the broker has no users, use --data-dir. This option needs no login.
    """
    chosen = mechanisms or SCRAM_NAMES
    if data_dir is not None:
        _create_in(Path(data_dir), name, read_password(password, password_file), chosen, iterations)
    else:
        with client.admin() as admin:
            if name in admin.list_users([name]):
                raise CliError(f"the user {name!r} exists already; `hmb users passwd` changes the password")
            admin.set_password(name, read_password(password, password_file), chosen, iterations)
    print_result({"user": name, "mechanisms": list(chosen)}, f"created user {name}", as_json)


def _create_in(directory: Path, name: str, password: str, mechanisms: Sequence[str], iterations: int) -> None:
    from hmb.broker.security.first_user import create_user
    from hmb.protocol.errors import KafkaError
    from hmb.storage.state.identity import DataDirectoryError

    try:
        create_user(directory, name, password, mechanisms, iterations)
    except (DataDirectoryError, KafkaError) as error:
        raise CliError(getattr(error, "message", str(error))) from error


@command.command("list")
@cluster_options
def list_(client: ClientConfig, as_json: bool) -> None:
    """List all users with their mechanisms."""
    with client.admin() as admin:
        users = admin.list_users()
    rows = [
        {"user": user, "mechanism": mechanism, "iterations": iterations}
        for user, mechanisms in users.items()
        for mechanism, iterations in mechanisms.items()
    ]
    print_rows(LISTED, rows, as_json)


@command.command()
@click.argument("name")
@iterations_option
@password_options
@cluster_options
def passwd(
    name: str, iterations: int, password: str | None, password_file: str | None, client: ClientConfig, as_json: bool
) -> None:
    """Change the password of the user NAME. The command asks for the new password."""
    with client.admin() as admin:
        mechanisms = admin.list_users([name]).get(name)
        if mechanisms is None:
            raise CliError(f"there is no user {name!r}; `hmb users create` creates one")
        admin.set_password(name, read_password(password, password_file), mechanisms, iterations)
    print_result({"user": name, "changed": True}, f"changed the password of {name}", as_json)


@command.command()
@click.argument("name")
@cluster_options
def delete(name: str, client: ClientConfig, as_json: bool) -> None:
    """Delete the user NAME. Connections that this user has already opened stay open."""
    with client.admin() as admin:
        admin.delete_user(name)
    print_result({"user": name, "deleted": True}, f"deleted user {name}", as_json)
