"""`hmb tokens`: create, renew and list delegation tokens, and make them expire."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.output import print_result, print_rows

if TYPE_CHECKING:
    from hmb.client.admin import DelegationToken

LISTED = ("token_id", "owner", "requester", "renewers", "issued", "expires", "max_time")
hmac_option = click.option(
    "--hmac", required=True, metavar="HMAC", help="The HMAC of the token, which `hmb tokens create` has printed."
)


@click.group()
def command() -> None:
    """Create, renew and list delegation tokens, and make them expire.

    With a delegation token, a program can log in as you without your password. A token is valid only for a limited
    time. The broker must have the setting delegation.token.secret.key. To use these commands, log in without a
    token.
    """


@command.command()
@click.option("--renewer", "renewers", multiple=True, metavar="User:NAME", help="A user that may renew the token.")
@click.option("--owner", metavar="User:NAME", help="The user that owns the token.  [default: you]")
@click.option(
    "--max-lifetime-ms", type=int, default=-1,
    help="The longest lifetime of the token, in ms.  [default: the broker's limit]",
)
@cluster_options
def create(
    renewers: tuple[str, ...], owner: str | None, max_lifetime_ms: int, client: ClientConfig, as_json: bool
) -> None:
    """Create a token, and print its id and its HMAC. The HMAC is the password of the token, so keep it secret."""
    for principal in (*renewers, *([owner] if owner else [])):
        _check_principal(principal)
    with client.admin() as admin:
        token = admin.create_token(renewers, max_lifetime_ms, owner)
    row = {**_row(token), "hmac": token.hmac}
    lines = [f"{name}: {value}" for name, value in row.items()]
    print_result(row, "\n".join(lines), as_json)


@command.command("list")
@click.option("--owner", "owners", multiple=True, metavar="User:NAME", help="List the tokens of this user only.")
@cluster_options
def list_(owners: tuple[str, ...], client: ClientConfig, as_json: bool) -> None:
    """List the tokens that you may see. The list does not contain the HMACs."""
    for principal in owners:
        _check_principal(principal)
    with client.admin() as admin:
        tokens = admin.list_tokens(owners or None)
    print_rows(LISTED, [_row(token) for token in tokens], as_json)


@command.command()
@hmac_option
@click.option(
    "--period-ms", type=int, default=-1,
    help="The time in ms until the token expires.  [default: the broker's setting delegation.token.expiry.time.ms]",
)
@cluster_options
def renew(hmac: str, period_ms: int, client: ClientConfig, as_json: bool) -> None:
    """Renew a token, so that it expires later. A token cannot live longer than its max time."""
    with client.admin() as admin:
        expires = _time(admin.renew_token(_checked_hmac(hmac), period_ms))
    print_result({"expires": expires}, f"the token expires at {expires}", as_json)


@command.command()
@hmac_option
@click.option(
    "--period-ms", type=int, default=-1,
    help="The time in ms until the token expires. Without this option, the token expires now.",
)
@cluster_options
def expire(hmac: str, period_ms: int, client: ClientConfig, as_json: bool) -> None:
    """Make a token expire now, or `--period-ms` milliseconds from now.

    Connections that use the token stay open until it expires.
    """
    with client.admin() as admin:
        expiry = admin.expire_token(_checked_hmac(hmac), period_ms)
    if expiry < 0:
        print_result({"expired": True}, "the token has expired", as_json)
    else:
        print_result({"expires": _time(expiry)}, f"the token expires at {_time(expiry)}", as_json)


def _check_principal(principal: str) -> None:
    kind, _, name = principal.partition(":")
    if not (kind and name):
        raise click.UsageError(f"{principal!r} does not have the form User:NAME")


def _checked_hmac(hmac: str) -> str:
    from binascii import Error, a2b_base64

    try:
        a2b_base64(hmac.encode(), strict_mode=True)
    except Error:
        raise click.UsageError("--hmac must be the base64 text that `hmb tokens create` has printed") from None
    return hmac


def _row(token: DelegationToken) -> dict[str, str]:
    return {
        "token_id": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": ",".join(token.renewers),
        "issued": _time(token.issue_time),
        "expires": _time(token.expiry_time),
        "max_time": _time(token.max_time),
    }


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
