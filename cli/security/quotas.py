"""`hmb quotas`: list, set and delete quotas. The names of the quotas are the same as in kafka-configs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from hmb.protocol.enums import QUOTA_KEYS, QuotaEntityType, QuotaKey

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.errors import NOT_FOUND, CliError
from ..shared.output import print_result, print_rows
from ..shared.parameters import did_you_mean
from ..shared.subjects import raise_failures

if TYPE_CHECKING:
    from hmb.client.admin import ClientQuotaEntity

COLUMNS = ("user", "client_id", "ip", "quota", "value")
DEFAULT = "<default>"  # The commands print this name for the default quota of users, client ids or IP addresses.
NAMES = [str(key) for key in QuotaKey]
ENTITY_OPTIONS = "--user, --client-id, --ip, or a default such as --user-defaults"


def entity_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add options such as `--user` to a command.

    The command gets their values as a ClientQuotaEntity (keyword `entity`).
    """

    @click.option("--user", metavar="NAME", help="The name of the user, for example alice (not User:alice).")
    @click.option("--user-defaults", is_flag=True, help="The default quota of users without their own quota.")
    @click.option("--client-id", metavar="ID", help="The client id.")
    @click.option("--client-defaults", is_flag=True, help="The default quota of client ids without their own quota.")
    @click.option("--ip", metavar="ADDRESS", help="The IP address.")
    @click.option("--ip-defaults", is_flag=True, help="The default quota of IP addresses without their own quota.")
    @functools.wraps(command)
    def run(
        *arguments: Any,
        user: str | None,
        user_defaults: bool,
        client_id: str | None,
        client_defaults: bool,
        ip: str | None,
        ip_defaults: bool,
        **options: Any,
    ) -> Any:
        from hmb.client.admin import ClientQuotaEntity

        entity = ClientQuotaEntity(
            _name("--user", user, user_defaults),
            _name("--client-id", client_id, client_defaults),
            _name("--ip", ip, ip_defaults),
        )
        if entity.ip is not None and (entity.user, entity.client_id) != (None, None):
            raise click.UsageError("options for IP addresses cannot be combined with options for users or client ids")
        return command(*arguments, entity=entity, **options)

    return run


def _name(option: str, name: str | None, is_default: bool) -> str | None:
    if name is not None and is_default:
        raise click.UsageError(f"{option} cannot be combined with {option.removesuffix('-id')}-defaults")
    if name == "":
        raise click.UsageError(f"{option} is empty; to choose a default quota, use an option such as --user-defaults")
    return "" if is_default else name


def _assignment(text: str) -> tuple[str, float]:
    """Return the key and the value in a text such as `producer_byte_rate=1048576`."""
    key, _, number = text.partition("=")
    if key not in NAMES:
        raise click.BadParameter(f"no quota has the name {key!r}; {did_you_mean(key, NAMES)}")
    try:
        value = float(number)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not NAME=NUMBER, such as {key}=1000") from None
    return key, value


@click.group()
def command() -> None:
    """List, set and delete quotas: limits for users, client ids and IP addresses.

    For example, a quota can limit the bytes that the user alice may send in one second. A quota can also apply to a
    user and a client id together.
    """


@command.command("list")
@entity_options
@cluster_options
def list_(entity: ClientQuotaEntity, client: ClientConfig, as_json: bool) -> None:
    """List the quotas of all entities that have the given names. Without options, list all quotas."""
    with client.admin() as admin:
        found = admin.describe_quotas(entity)
    rows = [
        {**_shown(each), "quota": key, "value": _number(value)}
        for each, values in found.items()
        for key, value in values.items()
    ]
    print_rows(COLUMNS, rows, as_json)


@command.command("set")
@click.argument("quotas", type=_assignment, nargs=-1, required=True, metavar="NAME=NUMBER...")
@entity_options
@cluster_options
def set_(
    quotas: tuple[tuple[str, float], ...], entity: ClientQuotaEntity, client: ClientConfig, as_json: bool
) -> None:
    """Set quotas of one entity. Other quotas of the entity stay as they are.

    producer_byte_rate and consumer_byte_rate limit the bytes of records that clients send or receive in one second.

    request_percentage limits the time that the broker's threads use for requests of clients. The number 100 means all
    the time of one thread.

    controller_mutation_rate limits the number of partitions that are created or deleted in one second.

    With --ip, connection_creation_rate limits the number of new connections in one second.
    """
    _check_keys(entity, [key for key, _ in quotas])
    _alter(entity, dict(quotas), client)
    for key, value in quotas:
        fields = {**_shown(entity), "quota": key, "value": _number(value)}
        print_result(fields, f"set {key} of {_sentence(entity)} to {_number(value)}", as_json)


@command.command()
@click.argument("names", type=click.Choice(NAMES), nargs=-1)
@entity_options
@cluster_options
def delete(names: tuple[str, ...], entity: ClientQuotaEntity, client: ClientConfig, as_json: bool) -> None:
    """Delete quotas of one entity. If you name no quota, the command deletes all quotas of the entity."""
    _check_keys(entity, names)
    with client.admin() as admin:
        stored = admin.describe_quotas(entity).get(entity, {})
    gone = [key for key in stored if key in names or not names]
    if missing := [name for name in names if name not in stored] or ([] if gone else ["quota"]):
        raise CliError(f"{_sentence(entity)} has no {missing[0]}; `hmb quotas list` shows all quotas", NOT_FOUND)
    _alter(entity, dict.fromkeys(gone), client)
    for key in gone:
        fields = {**_shown(entity), "quota": key, "deleted": True}
        print_result(fields, f"deleted {key} of {_sentence(entity)}", as_json)


def _check_keys(entity: ClientQuotaEntity, keys: Iterable[str]) -> None:
    """Raise click.UsageError if the user has named no entity, or if a quota in `keys` is not allowed for the entity.

    An entity is a user, a client id, an IP address, or a default. For example, the default `--user-defaults` stands for
    all users without a quota of their own.
    """
    if not entity.names:
        raise click.UsageError(f"an entity is required; use {ENTITY_OPTIONS}")
    type = next(iter(entity.names))
    allowed = QUOTA_KEYS[type]
    for key in keys:
        if key not in allowed:
            whose = "an IP address" if type is QuotaEntityType.IP else "a user or a client id"
            raise click.UsageError(f"{whose} has no quota {key}; use {', '.join(allowed)}")


def _alter(entity: ClientQuotaEntity, changes: dict[str, Any], client: ClientConfig) -> None:
    with client.admin() as admin:
        results = admin.alter_quotas({entity: changes})
    raise_failures([error for error in results.values() if error is not None])


def _shown(entity: ClientQuotaEntity) -> dict[str, str | None]:
    """Return the columns `user`, `client_id` and `ip` for an entity. A default quota has the name `<default>`."""
    return {column: DEFAULT if name == "" else name for column, name in entity._asdict().items()}


def _sentence(entity: ClientQuotaEntity) -> str:
    """Return an entity as text, for example `the user alice with every other client id`.

    "Every other client id" stands for all client ids that have no quota of their own.
    """
    words = {QuotaEntityType.USER: "user", QuotaEntityType.CLIENT_ID: "client id", QuotaEntityType.IP: "IP address"}
    return " with ".join(
        f"the {words[type]} {name}" if name else f"every other {words[type]}" for type, name in entity.names.items()
    )


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() else value
