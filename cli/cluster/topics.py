"""`hmb topics`: create, list, describe, alter, trim, delete."""

from typing import Any

import click

from ..completion import complete_config_names, complete_configs, complete_topics
from ..shared.arguments import topic_name
from ..shared.common import IntRange, name_value, print_json
from ..shared.tables import plural, print_table
from .administration import Target, admin_options, named, raise_failures, topic_argument, topics_argument
from .topic_trim import trim


@click.group()
def command() -> None:
    """Create, list, describe, alter, trim and delete topics."""


command.add_command(trim)


def assignment(text: str) -> dict[int, list[int]]:
    """The type of an option: brokers of partition 0, of partition 1 and so on, as 0:1,1:2,2:0"""
    try:
        return {number: [int(broker) for broker in part.split(":")] for number, part in enumerate(text.split(","))}
    except ValueError:
        what = f"{text!r}: write the brokers of each partition, the leader first, as 0:1,1:2 for two partitions"
        raise click.BadParameter(what) from None


@command.command()
@topic_argument
@click.option("--partitions", type=IntRange(1), help="How many.  [default: the broker's num.partitions]")
@click.option("--replication-factor", type=IntRange(1), help="How many brokers hold each.")
@click.option("--replica-assignment", type=assignment, metavar="0:1,1:2", help="Which ones, partition by partition.")
@click.option(
    "--config",
    "configs",
    type=name_value,
    multiple=True,
    metavar="NAME=VALUE",
    help="A topic setting, as in Kafka.",
    shell_complete=complete_configs,
)
@click.option("--if-not-exists", is_flag=True, help="A topic that is there already is fine.")
@admin_options
def create(
    topic: str,
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: dict[int, list[int]] | None,
    configs: tuple[tuple[str, str], ...],
    if_not_exists: bool,
    target: Target,
    as_json: bool,
) -> None:
    """Create TOPIC."""
    from hmb.client.admin import NewTopic
    from hmb.protocol.errors import ErrorCode, KafkaError

    if replica_assignment and (partitions or replication_factor):
        raise click.UsageError("--replica-assignment says how many partitions and replicas there are; leave out both")
    new = NewTopic(topic, partitions or -1, replication_factor or -1, dict(configs), replica_assignment or {})
    with target.admin() as admin:
        result = admin.create_topics([new])[topic]
    existed = isinstance(result, KafkaError) and result.code is ErrorCode.TOPIC_ALREADY_EXISTS
    if isinstance(result, KafkaError) and not (existed and if_not_exists):
        hint = "; --if-not-exists takes that as done" if existed else ""
        raise KafkaError(result.code, result.message + hint)
    if as_json:
        print_json({"topic": topic, "created": not existed})
    else:
        click.echo(f"topic {topic} exists already" if existed else f"created topic {topic}")


@command.command("list")
@click.option("-p", "--partitions", "detailed", is_flag=True, help="With partitions and replicas, as a table.")
@click.option("-i", "--internal", is_flag=True, help="With Kafka's own topics, too.")
@admin_options
def list_(detailed: bool, internal: bool, target: Target, as_json: bool) -> None:
    """List all topics, one a line."""
    with target.admin() as admin:
        topics = [topic for topic in admin.describe_topics().values() if not isinstance(topic, Exception)]
    rows = [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replicas": max((len(partition.replicas) for partition in topic.partitions), default=0),
            "internal": topic.is_internal,
        }
        for topic in sorted(topics)
        if internal or not topic.is_internal
    ]
    if as_json:
        print_json(rows)
    elif detailed:
        shown = ("topic", "partitions", "replicas")
        print_table(shown, [[row[name] for name in shown] for row in rows])
    else:
        for row in rows:
            click.echo(row["topic"])


@command.command()
@named("topic", "-t", topic_name, complete_topics, several=True, needed=False)
@click.option("--under-replicated-partitions", "lagging", is_flag=True, help="Only those of which a replica is behind.")
@click.option("--unavailable-partitions", "headless", is_flag=True, help="Only those that have no leader.")
@admin_options
def describe(topics: tuple[str, ...], lagging: bool, headless: bool, target: Target, as_json: bool) -> None:
    """Show the partitions of TOPICS or of all, their leaders and which offsets they hold, and settings of their own."""
    from .topic_description import describe_topic

    def is_wanted(partition: dict[str, Any]) -> bool:
        is_behind, has_none = len(partition["isr"]) < len(partition["replicas"]), partition["leader"] is None
        return (lagging and is_behind) or (headless and has_none)

    with target.admin() as admin:
        described = [describe_topic(admin, name) for name in topics or [it.name for it in admin.list_topics()]]
    for topic in described:
        if lagging or headless:
            topic["partitions"] = [it for it in topic["partitions"] if is_wanted(it)]
        if not topic["partitions"]:
            continue
        if as_json:
            print_json(topic)
        else:
            _print_topic(topic)


def _print_topic(topic: dict[str, Any]) -> None:
    click.echo(f"topic {topic['topic']}, {plural(len(topic['partitions']), 'partition')}")
    for name, value in topic["configs"].items():
        click.echo(f"{name}={value}")
    print_table(tuple(topic["partitions"][0]), [[_cell(it) for it in row.values()] for row in topic["partitions"]])


def _cell(value: object) -> object:
    return ",".join(map(str, value)) if isinstance(value, list) else value


@command.command()
@topic_argument
@click.option("--partitions", type=IntRange(1), help="So many in all; a topic only grows.")
@click.option(
    "--config",
    "configs",
    type=name_value,
    multiple=True,
    metavar="NAME=VALUE",
    help="Set this.",
    shell_complete=complete_configs,
)
@click.option(
    "--delete-config",
    multiple=True,
    metavar="NAME",
    help="Go back to the broker's setting.",
    shell_complete=complete_config_names,
)
@admin_options
def alter(
    topic: str,
    partitions: int | None,
    configs: tuple[tuple[str, str], ...],
    delete_config: tuple[str, ...],
    target: Target,
    as_json: bool,
) -> None:
    """Give TOPIC more partitions, or other settings; what is not named stays as it is."""
    from hmb.client.admin import ConfigResource, ResourceType, raised

    if partitions is None and not configs and not delete_config:
        raise click.UsageError("say what: --partitions, --config, --delete-config")
    if both := dict(configs).keys() & set(delete_config):
        raise click.UsageError(f"--config and --delete-config exclude each other for {', '.join(sorted(both))}")
    with target.admin() as admin:
        if configs or delete_config:
            admin.alter_configs(ConfigResource(ResourceType.TOPIC, topic), set=dict(configs), delete=delete_config)
        if partitions is not None:
            raised(admin.create_partitions({topic: partitions})[topic])
    if as_json:
        print_json({"topic": topic, "altered": True})
    else:
        click.echo(f"altered topic {topic}")


@command.command()
@topics_argument
@click.option("--if-exists", is_flag=True, help="A topic that is not there is fine.")
@admin_options
def delete(topics: tuple[str, ...], if_exists: bool, target: Target, as_json: bool) -> None:
    """Delete TOPICS, with all their records."""
    from hmb.protocol.errors import ErrorCode

    with target.admin() as admin:
        results = admin.delete_topics(topics)
    for topic, error in results.items():
        if error is None and as_json:
            print_json({"topic": topic, "deleted": True})
        elif error is None:
            click.echo(f"deleted topic {topic}")
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    raise_failures(error for error in results.values() if error and not (if_exists and error.code is missing))
