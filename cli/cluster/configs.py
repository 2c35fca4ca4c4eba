"""`hmb configs`: show and change the settings of topics, brokers, loggers, groups and client metrics.

An entity is anything that has settings, for example a topic. The user names an entity with the same options as in
kafka-configs: in the long form (`--entity-type topics --entity-name weather`) or in the short form (`--topic weather`).

The value of a setting can come from several sources. The broker uses the first source in this list that contains the
setting. In each line, the left column shows how a user sets the value, and the right column shows the name of the
source in the output:
    --topic weather --add-config segment.bytes=1MiB     dynamic_topic_config
    --broker 0 --add-config log.segment.bytes=2MiB      dynamic_broker_config
    --broker-defaults --add-config ...                  dynamic_default_broker_config
    server.properties of the broker                     static_broker_config
    not set: Kafka's default                            default_config
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from hmb.units import plain_value

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.completion import complete_groups, complete_setting_names, complete_settings, complete_topics
from ..shared.output import print_json, print_result

if TYPE_CHECKING:
    from hmb.client.admin import ConfigEntry, ConfigResource

TYPES = {  # the value of --entity-type -> the name of a ResourceType
    "topics": "TOPIC",
    "brokers": "BROKER",
    "broker-loggers": "BROKER_LOGGER",
    "groups": "GROUP",
    "client-metrics": "CLIENT_METRICS",
}
SHORT = {  # the short option -> its entity type
    "topic": "topics",
    "broker": "brokers",
    "broker_logger": "broker-loggers",
    "group": "groups",
    "client_metrics": "client-metrics",
}
CHANGES = re.compile(r"([^=,\[\]]+)=(\[[^\]]*\]|[^,]*)(?:,|$)")


@click.group()
def command() -> None:
    """Show and change settings of topics, brokers and groups."""


def entity_options(run: Callable[..., None]) -> Callable[..., None]:
    """Add options such as --topic to a command.

    With these options, a user names a topic, a broker, or another thing with settings. `resource_of` reads the
    options.
    """
    for option in reversed(
        (
            click.option("--entity-type", type=click.Choice(list(TYPES)), help="The type of the entity."),
            click.option("--entity-name", metavar="NAME", help="The name of the entity; for a broker, its id."),
            click.option(
                "--entity-default", is_flag=True,
                help="Select the settings for all brokers. This option needs --entity-type brokers.",
            ),
            click.option(
                "-t", "--topic", metavar="NAME", help="Select the settings of this topic.",
                shell_complete=complete_topics,
            ),
            click.option("--broker", metavar="ID", help="Select the settings of the broker with this ID."),
            click.option(
                "--broker-defaults", is_flag=True,
                help="Select the settings for all brokers. A broker's own settings take precedence.",
            ),
            click.option(
                "--broker-logger", metavar="ID", help="Select the log levels of the broker with this ID."
            ),
            click.option(
                "--group", metavar="NAME", help="Select the settings of this group.",
                shell_complete=complete_groups,
            ),
            click.option(
                "--client-metrics", metavar="NAME",
                help="Select the settings of this subscription. A subscription lists metrics that clients send.",
            ),
        )
    ):
        run = option(run)
    return run


def resource_of(entity: dict[str, Any]) -> ConfigResource:
    """Return the entity that the options name. Raises click.UsageError unless the options name exactly one entity."""
    from hmb.client.admin import ALL_BROKERS, ConfigResource, ResourceType

    named = [(SHORT[option], entity[option]) for option in SHORT if entity[option] is not None]
    if entity["broker_defaults"]:
        named.append(("brokers", ALL_BROKERS))
    if entity["entity_type"] is not None:
        named.append((entity["entity_type"], entity["entity_name"]))
        if entity["entity_default"]:
            if entity["entity_type"] != "brokers" or entity["entity_name"] is not None:
                how = "use it with --entity-type brokers, and without --entity-name"
                raise click.UsageError(f"--entity-default means all brokers, so {how}")
            named[-1] = ("brokers", ALL_BROKERS)
        elif not entity["entity_name"]:
            raise click.UsageError(f"--entity-type {entity['entity_type']} needs --entity-name")
    elif entity["entity_name"] is not None or entity["entity_default"]:
        raise click.UsageError("--entity-name and --entity-default need --entity-type")
    if len(named) != 1:
        short = "--topic, --broker, --broker-defaults, --broker-logger, --group, --client-metrics"
        raise click.UsageError(f"choose exactly one entity: use {short}, or --entity-type with --entity-name")
    kind, name = named[0]
    return ConfigResource(ResourceType[TYPES[kind]], name)


def entity_fields(resource: ConfigResource) -> dict[str, Any]:
    """Return the type and the name of an entity. The name is None for the entity "all brokers"."""
    kinds = {type_name: kind for kind, type_name in TYPES.items()}
    return {"entity_type": kinds[resource.type.name], "entity_name": resource.name or None}


@command.command()
@entity_options
@click.option("--all", "everything", is_flag=True, help="Show all settings, also those with default values.")
@click.option("--documentation", is_flag=True, help="Print an explanation of each setting.")
@click.option(
    "--synonyms", is_flag=True, help="Also show a setting's value at each level that sets it: topic, broker, default."
)
@click.argument("names", nargs=-1, metavar="[SETTING]...", shell_complete=complete_setting_names)
@cluster_options
def describe(
    everything: bool,
    documentation: bool,
    synonyms: bool,
    names: tuple[str, ...],
    client: ClientConfig,
    as_json: bool,
    **entity: Any,
) -> None:
    """Show the settings of a topic, a broker, the loggers of a broker, or a group.

    Without SETTINGS, show only the settings that were set for this topic, broker or group. The output also contains
    the source of each value. For example, a value with the source dynamic_topic_config was set for this topic. The
    source static_broker_config is a broker's server.properties, and the source default_config is Kafka's default.
    """
    from hmb.client.admin import raised

    resource = resource_of(entity)
    with client.admin() as admin:
        entries = raised(admin.describe_configs([resource], documentation=documentation)[resource])
    _check_names(resource, entries, names)
    shown = [
        entry
        for entry in sorted(entries.values())
        if entry.name in names or (not names and (everything or entry.source is resource.own_source))
    ]
    if as_json:
        for entry in shown:
            print_json(entity_fields(resource) | _entry_fields(entry, synonyms, documentation))
        return
    if not shown:
        click.echo(f"{resource} has no settings of its own; --all shows all settings", err=True)
    for entry in shown:
        _print_entry(entry, synonyms, documentation)


def _check_names(resource: ConfigResource, entries: dict[str, ConfigEntry], names: tuple[str, ...]) -> None:
    from hmb.client.admin.configs import no_such_setting

    for name in names:
        if name not in entries:
            raise no_such_setting(resource, name, entries)


def _print_entry(entry: ConfigEntry, synonyms: bool, documentation: bool) -> None:
    value = "(hidden)" if entry.sensitive else entry.value
    notes = [entry.source.name.lower(), *(["read-only"] if entry.read_only else [])]
    click.echo(f"{entry.name}={'' if value is None else value}  ({', '.join(notes)})")
    for synonym in entry.synonyms if synonyms else ():
        click.echo(f"    {synonym.source.name.lower()}: {synonym.name}={synonym.value}")
    if documentation and entry.documentation:
        click.echo(f"    {entry.documentation}")


def _entry_fields(entry: ConfigEntry, synonyms: bool, documentation: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name,
        "type": entry.type,
        "read_only": entry.read_only,
        "sensitive": entry.sensitive,
    }
    if synonyms:
        found["synonyms"] = [{"name": it.name, "value": it.value, "source": it.source.name} for it in entry.synonyms]
    if documentation:
        found["documentation"] = entry.documentation
    return found


def changes(text: str) -> list[tuple[str, str]]:
    """Parse settings such as `name=value,name=[a,b]`, as kafka-configs does. Commas in brackets belong to the value."""
    found, end = [], 0
    while match := CHANGES.match(text, end):
        name, value = match[1].strip(), match[2]
        try:
            found.append((name, value[1:-1] if value.startswith("[") else plain_value(name, value)))
        except ValueError as error:
            raise click.BadParameter(f"{text!r}: {error}") from None
        end = match.end()
    if end < len(text) or not found:
        raise click.BadParameter(f"{text!r} is not of the form name=value,name=[value,value]")
    return found


def names_of(text: str) -> list[str]:
    """Parse the names of settings, which are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _change_option(name: str, help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        name, type=changes, multiple=True, metavar="NAME=VALUE", help=help, shell_complete=complete_settings
    )


@command.command()
@entity_options
@_change_option("--add-config", "Set a value. Write a list in brackets: NAME=[A,B].")
@click.option(
    "--delete-config", type=names_of, multiple=True, metavar="NAME",
    help="Remove the value. A more general value then applies, for example the broker's value or the default.",
    shell_complete=complete_setting_names
)
@_change_option("--append-config", "Add an item to a list.")
@_change_option("--subtract-config", "Remove an item from a list.")
@click.option("--dry-run", is_flag=True, help="Change nothing; ask the broker whether it would accept the change.")
@cluster_options
def alter(
    add_config: tuple[list[tuple[str, str]], ...],
    delete_config: tuple[list[str], ...],
    append_config: tuple[list[tuple[str, str]], ...],
    subtract_config: tuple[list[tuple[str, str]], ...],
    dry_run: bool,
    client: ClientConfig,
    as_json: bool,
    **entity: Any,
) -> None:
    """Change settings of a topic, a broker, the loggers of a broker, or a group.

    If the broker refuses one of the changes, it makes none of them. A value can have a unit: retention.ms=7d,
    segment.bytes=1MiB.
    """
    resource = resource_of(entity)
    deleted = [name for names in delete_config for name in names]
    added, appended, subtracted = (dict(itertools.chain(*it)) for it in (add_config, append_config, subtract_config))
    named = [*deleted, *added, *appended, *subtracted]
    if not named:
        raise click.UsageError(
            "choose at least one of these options: --add-config, --delete-config, --append-config, --subtract-config"
        )
    if twice := sorted({name for name in named if named.count(name) > 1}):
        raise click.UsageError(f"only one change for each setting is allowed; several changes for: {', '.join(twice)}")
    with client.admin() as admin:
        admin.alter_configs(
            resource, set=added, delete=deleted, append=appended, subtract=subtracted, validate_only=dry_run
        )
    text = f"the broker would accept this for {resource}" if dry_run else f"altered {resource}"
    print_result(entity_fields(resource) | {"altered": not dry_run}, text, as_json)
