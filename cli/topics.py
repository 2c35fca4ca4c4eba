"""`hmb topics`: create, list, describe, alter, delete."""

import click

from .arguments import topic_argument, topic_name
from .common import NOT_FOUND, CliError, bootstrap_option, json_option, name_value, print_json
from .patience import patience_with

TIMEOUT_MS = 30_000


@click.group()
def command() -> None:
    """Create, list, describe, alter and delete topics."""


@command.command()
@topic_argument
@bootstrap_option
@click.option("--partitions", type=click.IntRange(1), help="How many.  [default: the broker's num.partitions]")
@click.option("--replication-factor", type=click.IntRange(1), help="How many brokers hold each.")
@click.option("--config", type=name_value, multiple=True, metavar="NAME=VALUE", help="A topic setting, as in Kafka.")
@click.option("--if-not-exists", is_flag=True, help="A topic that is there already is fine.")
@json_option
def create(
    topic: str,
    servers: str,
    partitions: int | None,
    replication_factor: int | None,
    config: tuple[tuple[str, str], ...],
    if_not_exists: bool,
    as_json: bool,
) -> None:
    """Create TOPIC."""
    from hmb.client import Cluster
    from hmb.client.metadata import topic_error
    from hmb.protocol.errors import ErrorCode, KafkaError
    from hmb.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

    new = CreateTopicsRequest.CreatableTopic(
        name=topic,
        num_partitions=-1 if partitions is None else partitions,
        replication_factor=-1 if replication_factor is None else replication_factor,
        configs=[CreateTopicsRequest.CreatableTopic.CreatableTopicConfig(name=n, value=v) for n, v in config],
    )
    request = CreateTopicsRequest(topics=[new], timeout_ms=TIMEOUT_MS)
    with patience_with(servers):
        response: CreateTopicsResponse = Cluster(servers).send_to_controller(request)
    for result in response.topics:
        existed = result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        if result.error_code and not (existed and if_not_exists):
            error = topic_error(topic, result.error_code, result.error_message)
            raise KafkaError(error.code, f"{error.message}; --if-not-exists takes that as done") if existed else error
        if as_json:
            print_json({"topic": topic, "created": not existed})
        else:
            click.echo(f"topic {topic} exists already" if existed else f"created topic {topic}")


@command.command("list")
@bootstrap_option
@json_option
def list_(servers: str, as_json: bool) -> None:
    """List all topics."""
    from hmb.client import Cluster

    with patience_with(servers):
        topics = Cluster(servers).topics()
    if as_json:
        print_json([{"topic": topic.name, "partitions": len(topic.leaders)} for topic in topics])
        return
    for topic in topics:
        click.echo(topic.name)


@command.command()
@topic_argument
@bootstrap_option
@json_option
def describe(topic: str, servers: str, as_json: bool) -> None:
    """Show the partitions of TOPIC, their leaders and which offsets they hold, and the settings that it has itself."""
    from hmb.client import Cluster, TopicPartition
    from hmb.client.offsets import EARLIEST, LATEST, list_offsets

    from .topic_settings import topic_settings

    cluster = Cluster(servers)
    with patience_with(servers):
        leaders = cluster.topic(topic).leaders
        led = [TopicPartition(topic, number) for number, leader in leaders.items() if leader]
        first, end = list_offsets(cluster, led, EARLIEST), list_offsets(cluster, led, LATEST)
        settings = topic_settings(cluster, topic)
    partitions = [
        {
            "partition": number,
            "leader": f"{leader.host}:{leader.port}" if leader else None,
            "log_start_offset": first.get(TopicPartition(topic, number)),
            "log_end_offset": end.get(TopicPartition(topic, number)),
        }
        for number, leader in leaders.items()
    ]
    if as_json:
        print_json({"topic": topic, "configs": settings, "partitions": partitions})
        return
    click.echo(f"topic {topic}, {len(partitions)} partition{'s' * (len(partitions) != 1)}")
    for name, value in settings.items():
        click.echo(f"{name}={value}")
    table = [tuple(partitions[0]), *(tuple(row.values()) for row in partitions)]
    cells = [["-" if cell is None else str(cell) for cell in row] for row in table]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@command.command()
@topic_argument
@bootstrap_option
@click.option("--partitions", type=click.IntRange(1), help="So many in all; a topic only grows.")
@click.option("--config", type=name_value, multiple=True, metavar="NAME=VALUE", help="Set this.")
@click.option("--delete-config", multiple=True, metavar="NAME", help="Go back to the broker's setting.")
@json_option
def alter(
    topic: str,
    servers: str,
    partitions: int | None,
    config: tuple[tuple[str, str], ...],
    delete_config: tuple[str, ...],
    as_json: bool,
) -> None:
    """Give TOPIC more partitions, or other settings; what is not named stays as it is."""
    from hmb.client import Cluster

    from .topic_settings import add_partitions, alter_settings

    if partitions is None and not config and not delete_config:
        raise click.UsageError("say what: --partitions, --config, --delete-config")
    cluster = Cluster(servers)
    with patience_with(servers):
        if config or delete_config:
            alter_settings(cluster, topic, {**dict.fromkeys(delete_config), **dict(config)})
        if partitions is not None:
            add_partitions(cluster, topic, partitions)
    if as_json:
        print_json({"topic": topic, "altered": True})
    else:
        click.echo(f"altered topic {topic}")


@command.command()
@click.argument("topics", nargs=-1, required=True, type=topic_name)
@bootstrap_option
@json_option
def delete(topics: tuple[str, ...], servers: str, as_json: bool) -> None:
    """Delete TOPICS, with all their records."""
    from hmb.client import Cluster
    from hmb.client.metadata import topic_error
    from hmb.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

    cluster = Cluster(servers)
    request = DeleteTopicsRequest(timeout_ms=TIMEOUT_MS)
    with patience_with(servers):
        version = cluster.version_of(DeleteTopicsRequest)
        if version >= 6:
            request.topics = [DeleteTopicsRequest.DeleteTopicState(name=topic) for topic in topics]
        else:
            request.topic_names = list(topics)
        response: DeleteTopicsResponse = cluster.send_to_controller(request, version)
    failed = []
    for result in response.responses:
        if result.error_code:
            failed.append(topic_error(result.name or "", result.error_code, result.error_message))
        elif as_json:
            print_json({"topic": result.name, "deleted": True})
        else:
            click.echo(f"deleted topic {result.name}")
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise CliError("; ".join(error.message for error in failed), NOT_FOUND)
