"""`hmb topics`: create, list, describe, alter, trim and delete topics."""

from __future__ import annotations

from typing import Any

import click

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.completion import complete_setting_names, complete_settings
from ..shared.output import plural, print_json, print_result, print_rows
from ..shared.parameters import IntRange
from ..shared.settings import setting
from ..shared.subjects import (
    named_topics,
    no_match,
    pattern_option,
    raise_failures,
    topic_argument,
    topics_argument,
    topics_or_patterns_argument,
)
from .topic_trim import trim

LISTED = ("topic", "partition_count", "replication_factor")
DESCRIBED = ("partition", "leader", "replicas", "isr", "log_start_offset", "log_end_offset")
ACCEPT_EXISTING = "--if-not-exists accepts an existing topic"

Settings = tuple[tuple[str, str], ...]

settings_option = click.option(
    "-c", "--config", "configs", type=setting, multiple=True, metavar="NAME=VALUE",
    help="A topic setting. NAME is the name that Kafka uses, and VALUE can have a unit, for example retention.ms=7d.",
    shell_complete=complete_settings,
)


@click.group()
def command() -> None:
    """Create, list, describe, alter, trim and delete topics."""


command.add_command(trim)


def assignment(text: str) -> dict[int, list[int]]:
    """Parse which brokers store each partition.

    `0:1,1:2` means: brokers 0 and 1 for partition 0, brokers 1 and 2 for partition 1.
    """
    try:
        return {number: [int(broker) for broker in part.split(":")] for number, part in enumerate(text.split(","))}
    except ValueError:
        what = f"{text!r}: write the brokers of each partition, the leader first, as 0:1,1:2 for two partitions"
        raise click.BadParameter(what) from None


@command.command()
@topics_argument
@click.option(
    "-p", "--partitions", type=IntRange(1), help="The number of partitions.  [default: the broker's num.partitions]"
)
@click.option(
    "-r", "--replication-factor", "--replicas", type=IntRange(1), help="The number of replicas of each partition."
)
@click.option(
    "--replica-assignment", type=assignment, metavar="0:1,1:2", help="The ids of the brokers that store each partition."
)
@settings_option
@click.option("--if-not-exists", is_flag=True, help="Do not report an error if the topic exists already.")
@cluster_options
def create(
    topics: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: dict[int, list[int]] | None,
    configs: Settings,
    if_not_exists: bool,
    client: ClientConfig,
    as_json: bool,
) -> None:
    """Create TOPICS. For an option that is left out, the broker uses its default."""
    from hmb.client.admin import NewTopic
    from hmb.protocol.errors import ErrorCode, KafkaError

    if replica_assignment and (partitions or replication_factor):
        what = "--replica-assignment already sets the number of partitions and the number of replicas"
        raise click.UsageError(f"{what}; leave out --partitions and --replication-factor")
    numbers = (partitions or -1, replication_factor or -1)
    with client.admin() as admin:
        results = admin.create_topics(
            [NewTopic(topic, *numbers, dict(configs), replica_assignment or {}) for topic in dict.fromkeys(topics)]
        )
    failures = []
    for topic, result in results.items():
        existed = isinstance(result, KafkaError) and result.code is ErrorCode.TOPIC_ALREADY_EXISTS
        if isinstance(result, KafkaError) and not (existed and if_not_exists):
            failures.append(result if not existed else KafkaError(result.code, f"{result.message}; {ACCEPT_EXISTING}"))
        else:
            text = f"topic {topic} exists already" if existed else f"created topic {topic}"
            print_result({"topic": topic, "created": not existed}, text, as_json)
    raise_failures(failures)


_with_internal = click.option("-i", "--internal", is_flag=True, help="Include Kafka's internal topics.")


@command.command("list")
@topics_or_patterns_argument
@pattern_option
@click.option("-d", "--detailed", is_flag=True, help="Print a table with partitions and replicas.")
@_with_internal
@cluster_options
def list_(
    topics: tuple[str, ...], is_pattern: bool, detailed: bool, internal: bool, client: ClientConfig, as_json: bool
) -> None:
    """List TOPICS, one topic on each line. Without TOPICS, list all topics."""
    from hmb.client.admin import raised

    from .topic_description import topic_fields

    with client.admin() as admin:
        names = named_topics(admin, topics, is_pattern, internal=internal) if topics else None
        described = [raised(topic) for topic in admin.describe_topics(names).values()]
    rows = [topic_fields(it) for it in sorted(described) if internal or names is not None or not it.is_internal]
    if as_json or detailed:
        print_rows(LISTED, rows, as_json)
    else:
        for row in rows:
            click.echo(row["topic"])


@command.command()
@topics_or_patterns_argument
@pattern_option
@_with_internal
@click.option(
    "--under-replicated-partitions", "lagging", is_flag=True,
    help="Show only partitions with a replica that is not in sync."
)
@click.option("--unavailable-partitions", "headless", is_flag=True, help="Show only partitions without a leader.")
@cluster_options
def describe(
    topics: tuple[str, ...],
    is_pattern: bool,
    internal: bool,
    lagging: bool,
    headless: bool,
    client: ClientConfig,
    as_json: bool,
) -> None:
    """Show the partitions of TOPICS, and the settings that were set for each topic. Without TOPICS, show all topics."""
    from .topic_description import describe_topic

    def is_wanted(partition: dict[str, Any]) -> bool:
        is_late, has_no_leader = len(partition["isr"]) < len(partition["replicas"]), partition["leader"] is None
        return not (lagging or headless) or (lagging and is_late) or (headless and has_no_leader)

    with client.admin() as admin:
        names = named_topics(admin, topics or (".*",), is_pattern or not topics, internal=internal)
        if topics and not names:
            raise no_match(topics)
        described = [describe_topic(admin, name) for name in names]
    for topic in described:
        topic["partitions"] = [partition for partition in topic["partitions"] if is_wanted(partition)]
        if not topic["partitions"]:
            continue
        if as_json:
            print_json(topic)
        else:
            click.echo(f"topic {topic['topic']}, {plural(len(topic['partitions']), 'partition')}")
            for name, value in topic["configs"].items():
                click.echo(f"{name}={value}")
            print_rows(DESCRIBED, topic["partitions"], as_json)


@command.command()
@topic_argument
@click.option(
    "-p", "--partitions", type=IntRange(1),
    help="The new number of partitions, which cannot be lower than the old number.",
)
@settings_option
@click.option(
    "--delete-config", multiple=True, metavar="NAME", shell_complete=complete_setting_names,
    help="Remove a topic setting; the topic then uses the broker's setting.",
)
@cluster_options
def alter(
    topic: str,
    partitions: int | None,
    configs: Settings,
    delete_config: tuple[str, ...],
    client: ClientConfig,
    as_json: bool,
) -> None:
    """Add partitions to TOPIC, or change some of its settings."""
    from hmb.client.admin import ConfigResource, ResourceType, raised

    if partitions is None and not configs and not delete_config:
        raise click.UsageError("choose at least one of these options: --partitions, --config, --delete-config")
    if both := dict(configs).keys() & set(delete_config):
        raise click.UsageError(f"--config and --delete-config cannot be combined for {', '.join(sorted(both))}")
    with client.admin() as admin:
        if configs or delete_config:
            admin.alter_configs(ConfigResource(ResourceType.TOPIC, topic), set=dict(configs), delete=delete_config)
        if partitions is not None:
            raised(admin.create_partitions({topic: partitions})[topic])
    print_result({"topic": topic, "altered": True}, f"altered topic {topic}", as_json)


@command.command()
@topics_or_patterns_argument
@pattern_option
@click.option("--if-exists", is_flag=True, help="Do not report an error if the topic does not exist.")
@cluster_options
def delete(topics: tuple[str, ...], is_pattern: bool, if_exists: bool, client: ClientConfig, as_json: bool) -> None:
    """Delete TOPICS with all their records."""
    from hmb.protocol.errors import ErrorCode

    if not topics:
        raise click.UsageError("Missing argument 'TOPIC'.")
    with client.admin() as admin:
        names = named_topics(admin, topics, is_pattern)
        results = admin.delete_topics(names) if names else {}
    if not names and not if_exists:
        raise no_match(topics)
    for topic, error in results.items():
        if error is None:
            print_result({"topic": topic, "deleted": True}, f"deleted topic {topic}", as_json)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    raise_failures(error for error in results.values() if error and not (if_exists and error.code is missing))
