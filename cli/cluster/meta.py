"""`hmb meta`: a cluster at a glance, as `kcat -L` shows it; and what its brokers can do."""

from typing import TYPE_CHECKING, Any

import click

from ..completion import complete_topics
from ..shared.arguments import topic_name
from ..shared.common import print_json
from ..shared.tables import plural, print_table
from .administration import Target, admin_options, named

if TYPE_CHECKING:
    from hmb.client import Admin
    from hmb.client.admin import BrokerVersions, TopicDescription

PARTITION = ("topic", "partition", "leader", "replicas", "isr", "offline")


@click.command()
@named("topic", "-t", topic_name, complete_topics, several=True, needed=False)
@click.option("-i", "--internal", is_flag=True, help="With Kafka's own topics, too, if none is named.")
@click.option("--versions", is_flag=True, help="Which APIs the brokers have, in which versions.")
@admin_options
def command(topics: tuple[str, ...], internal: bool, versions: bool, target: Target, as_json: bool) -> None:
    """Show the brokers of a cluster, its controller, and the partitions of TOPICS or of all: who leads, who follows."""
    if versions and (topics or internal):
        raise click.UsageError("--versions is about brokers: leave out the topics")
    with target.admin() as admin:
        if versions:
            brokers = {f"{node.host}:{node.port}": told for node, told in admin.describe_versions().items()}
        else:
            described = _describe(admin, topics, internal)
    if versions:
        for address, told in brokers.items():
            _print_versions(address, told, as_json)
    elif as_json:
        print_json(described)
    else:
        _print(described)


def _describe(admin: "Admin", topics: tuple[str, ...], internal: bool) -> dict[str, Any]:
    from hmb.client.admin import raised

    cluster = admin.describe_cluster()
    found = [raised(topic) for topic in admin.describe_topics(topics or None).values()]
    return {
        "cluster_id": cluster.cluster_id,
        "controller": None if cluster.controller_id < 0 else cluster.controller_id,
        "brokers": [
            {"broker": it.broker_id, "host": it.host, "port": it.port, "rack": it.rack} for it in cluster.brokers
        ],
        "topics": [_topic(topic) for topic in sorted(found) if topics or internal or not topic.is_internal],
    }


def _topic(topic: "TopicDescription") -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": str(topic.topic_id) if topic.topic_id.int else None,
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": it.partition,
                "leader": None if it.leader < 0 else it.leader,
                "leader_epoch": None if it.leader_epoch < 0 else it.leader_epoch,
                "replicas": list(it.replicas),
                "isr": list(it.isr),
                "offline": list(it.offline),
            }
            for it in topic.partitions
        ],
    }


def _print(cluster: dict[str, Any]) -> None:
    brokers, topics = cluster["brokers"], cluster["topics"]
    controller = "unknown" if cluster["controller"] is None else cluster["controller"]
    counts = f"{plural(len(brokers), 'broker')}, {plural(len(topics), 'topic')}"
    click.echo(f"cluster {cluster['cluster_id'] or 'without an id'}, controller {controller}, {counts}\n")
    print_table(("broker", "host", "port", "rack"), [tuple(broker.values()) for broker in brokers])
    if topics:
        click.echo()
        rows = [(topic["topic"], it) for topic in topics for it in topic["partitions"]]
        print_table(PARTITION, [(name, *(_cell(it[column]) for column in PARTITION[1:])) for name, it in rows])


def _cell(value: object) -> object:
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _print_versions(address: str, told: "BrokerVersions", as_json: bool) -> None:
    """Beside the broker's versions those of this client, and the one that the two would speak."""
    from hmb.protocol.api_keys import ApiKey
    from hmb.protocol.messages import API_KEYS, request_class

    names = {int(key): key.name for key in ApiKey}
    rows: list[dict[str, Any]] = []
    for key, theirs in sorted(told.apis.items()):
        ours = request_class(key).versions if key in API_KEYS else range(0)
        common = range(max(ours.start, theirs.start), min(ours.stop, theirs.stop))
        name = names.get(key)
        rows.append({"key": key, "api": name, "broker": theirs, "hmb": ours, "used": common[-1] if common else None})
    if as_json:
        apis = [{name: _ends(value) for name, value in row.items()} for row in rows]
        print_json({"broker": address, "apis": apis, "features": dict(told.features)})
        return
    click.echo(f"broker {address}, {plural(len(rows), 'API')}")
    for feature, level in sorted(told.features.items()):
        click.echo(f"{feature}={level}")
    print_table(tuple(rows[0]), [[_span(value) for value in row.values()] for row in rows])


def _span(value: object) -> object:
    if not isinstance(value, range):
        return value
    return f"{value[0]}-{value[-1]}" if value else None


def _ends(value: object) -> object:
    if not isinstance(value, range):
        return value
    return [value[0], value[-1]] if value else None
