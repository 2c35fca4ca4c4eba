"""`hmb configs`: settings of topics, brokers, loggers and groups, to show and to change.

The entity is named as kafka-configs names it, in its long way (--entity-type topics --entity-name T) or its short one
(--topic T).
"""

import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ..completion import complete_config_names, complete_configs, complete_groups, complete_topics
from ..shared.common import print_json
from .administration import Target, admin_options

if TYPE_CHECKING:
    from hmb.client.admin import ConfigEntry, ConfigResource

TYPES = {
    "topics": "TOPIC",
    "brokers": "BROKER",
    "broker-loggers": "BROKER_LOGGER",
    "groups": "GROUP",
    "client-metrics": "CLIENT_METRICS",
}
SHORT = {  # option -> its entity type
    "topic": "topics",
    "broker": "brokers",
    "broker_logger": "broker-loggers",
    "group": "groups",
    "client_metrics": "client-metrics",
}
CHANGES = re.compile(r"([^=,\[\]]+)=(\[[^\]]*\]|[^,]*)(?:,|$)")


@click.group()
def command() -> None:
    """Show and change settings of topics, brokers, groups."""


def entity_options(run: Callable[..., None]) -> Callable[..., None]:
    """The options that name what has the settings; `resource_of` reads them."""
    for option in reversed(
        (
            click.option("--entity-type", type=click.Choice(list(TYPES)), help="What has the settings."),
            click.option("--entity-name", metavar="NAME", help="Its name, or a broker's id."),
            click.option("--entity-default", is_flag=True, help="What is set for all brokers."),
            click.option("-t", "--topic", metavar="NAME", help="A topic.", shell_complete=complete_topics),
            click.option("--broker", metavar="ID", help="A broker."),
            click.option("--broker-defaults", is_flag=True, help="All brokers."),
            click.option("--broker-logger", metavar="ID", help="The loggers of a broker."),
            click.option("--group", metavar="NAME", help="A group.", shell_complete=complete_groups),
            click.option("--client-metrics", metavar="NAME", help="What clients are to measure."),
        )
    ):
        run = option(run)
    return run


def resource_of(entity: dict[str, Any]) -> "ConfigResource":
    """What was named, in one of its ways."""
    from hmb.client.admin import ALL_BROKERS, ConfigResource, ResourceType

    named = [(SHORT[option], entity[option]) for option in SHORT if entity[option] is not None]
    if entity["broker_defaults"]:
        named.append(("brokers", ALL_BROKERS))
    if entity["entity_type"] is not None:
        named.append((entity["entity_type"], entity["entity_name"]))
        if entity["entity_default"]:
            if entity["entity_type"] != "brokers" or entity["entity_name"] is not None:
                raise click.UsageError("--entity-default stands for all brokers: --entity-type brokers, and no name")
            named[-1] = ("brokers", ALL_BROKERS)
        elif not entity["entity_name"]:
            raise click.UsageError(f"which of the {entity['entity_type']}? say --entity-name")
    elif entity["entity_name"] is not None or entity["entity_default"]:
        raise click.UsageError("what is it? say --entity-type")
    if len(named) != 1:
        what = "--topic, --broker, --broker-defaults, --broker-logger, --group, or --entity-type and --entity-name"
        raise click.UsageError(f"name one thing that has settings: {what}")
    kind, name = named[0]
    return ConfigResource(ResourceType[TYPES[kind]], name)


@command.command(short_help="Show settings, and where they come from.")
@entity_options
@click.option("--all", "everything", is_flag=True, help="All settings, not only what was set for this one.")
@click.option("--documentation", is_flag=True, help="With a line on each of what it does.")
@click.option("--synonyms", is_flag=True, help="With all places that a value could come from.")
@click.argument("names", nargs=-1, metavar="[SETTING]...", shell_complete=complete_config_names)
@admin_options
def describe(
    everything: bool,
    documentation: bool,
    synonyms: bool,
    names: tuple[str, ...],
    target: Target,
    as_json: bool,
    **entity: Any,
) -> None:
    """Show what was set for a topic, a broker, its loggers or a group; or these SETTINGS, wherever they come from.

    A value comes from the entity itself (dynamic_topic_config ...), from what was set for all brokers, from a broker's
    server.properties (static_broker_config), or it is Kafka's default.
    """
    from hmb.client.admin import raised

    resource = resource_of(entity)
    with target.admin() as admin:
        entries = raised(admin.describe_configs([resource], documentation=documentation)[resource])
    _check_names(resource, entries, names)
    shown = [
        entry
        for entry in sorted(entries.values())
        if entry.name in names or (not names and (everything or entry.source is resource.own_source))
    ]
    if as_json:
        configs = [_as_json(entry, synonyms, documentation) for entry in shown]
        print_json({"entity": str(resource), "configs": configs})
        return
    if not shown:
        click.echo("nothing is set; --all shows all", err=True)
    for entry in shown:
        value = "(hidden)" if entry.sensitive else entry.value
        click.echo(f"{entry.name}={'' if value is None else value}  {_origin(entry)}")
        for synonym in entry.synonyms if synonyms else ():
            click.echo(f"    {synonym.source.name.lower()}: {synonym.name}={synonym.value}")
        if documentation and entry.documentation:
            click.echo(f"    {entry.documentation}")


def _check_names(resource: "ConfigResource", entries: "dict[str, ConfigEntry]", names: tuple[str, ...]) -> None:
    from hmb.client.admin.configs import no_such_setting

    for name in names:
        if name not in entries:
            raise no_such_setting(resource, name, entries)


def _origin(entry: "ConfigEntry") -> str:
    notes = [entry.source.name.lower()]
    notes += ["read-only"] if entry.read_only else []
    return f"({', '.join(notes)})"


def _as_json(entry: "ConfigEntry", synonyms: bool, documentation: bool) -> dict[str, Any]:
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
    """The type of an option: name=value,name=[a,b], as kafka-configs has it; brackets keep commas together."""
    found, end = [], 0
    while match := CHANGES.match(text, end):
        name, value = match.groups()
        found.append((name.strip(), value[1:-1] if value.startswith("[") else value))
        end = match.end()
    if end < len(text) or not found:
        raise click.BadParameter(f"{text!r} is not of the form name=value,name=[value,value]")
    return found


def names_of(text: str) -> list[str]:
    """The type of an option: names with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _change_option(name: str, help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        name, type=changes, multiple=True, metavar="NAME=VALUE", help=help, shell_complete=complete_configs
    )


@command.command(short_help="Change settings.")
@entity_options
@_change_option("--add-config", "Set this; a list in brackets: NAME=[A,B].")
@click.option(
    "--delete-config",
    type=names_of,
    multiple=True,
    metavar="NAME",
    help="Go back to where else it comes from.",
    shell_complete=complete_config_names,
)
@_change_option("--append-config", "Add to a list.")
@_change_option("--subtract-config", "Take from a list.")
@click.option("--dry-run", is_flag=True, help="Only ask the broker whether it would.")
@admin_options
def alter(
    add_config: tuple[list[tuple[str, str]], ...],
    delete_config: tuple[list[str], ...],
    append_config: tuple[list[tuple[str, str]], ...],
    subtract_config: tuple[list[tuple[str, str]], ...],
    dry_run: bool,
    target: Target,
    as_json: bool,
    **entity: Any,
) -> None:
    """Change settings of a topic, a broker, its loggers or a group, all of them or none; what is not named stays."""
    resource = resource_of(entity)
    deleted = [name for names in delete_config for name in names]
    given = [dict(itertools.chain(*option)) for option in (add_config, append_config, subtract_config)]
    named = [*deleted, *(name for option in given for name in option)]
    if not named:
        raise click.UsageError("say what: --add-config, --delete-config, --append-config, --subtract-config")
    if twice := sorted({name for name in named if named.count(name) > 1}):
        raise click.UsageError(f"one change for each setting: {', '.join(twice)} has several")
    added, appended, subtracted = given
    with target.admin() as admin:
        admin.alter_configs(
            resource, set=added, delete=deleted, append=appended, subtract=subtracted, validate_only=dry_run
        )
    if as_json:
        print_json({"entity": str(resource), "altered": not dry_run})
    else:
        click.echo(f"{resource} could be altered so" if dry_run else f"altered {resource}")


command.add_command(alter, "set")
