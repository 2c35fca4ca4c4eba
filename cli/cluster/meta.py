"""`hmb meta`: show the brokers, topics and leaders of a cluster. The output is similar to that of `kcat -L`.

With the option --versions, `hmb meta` shows the APIs of each broker, but no topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.errors import CliError
from ..shared.output import plural, print_json, print_rows
from ..shared.subjects import internal_option, optional_topics_argument

if TYPE_CHECKING:
    from hmb.client import Admin
    from hmb.client.admin import BrokerVersions

BROKER = ("broker", "host", "port", "rack")
PARTITION = ("topic", "partition", "leader", "replicas", "isr", "offline")
API = ("key", "api", "broker_versions", "hmb_versions", "used_version")


@click.command()
@optional_topics_argument
@internal_option
@click.option("--versions", is_flag=True, help="Show the APIs of each broker, with the versions of each API.")
@click.option("--health", is_flag=True, help="Show only problems. If the command finds a problem, the exit code is 1.")
@cluster_options
def command(
    topics: tuple[str, ...], internal: bool, versions: bool, health: bool, client: ClientConfig, as_json: bool
) -> None:
    """Show the brokers of a cluster, its controller, and the leaders and replicas of TOPICS.

    Without TOPICS, show all topics. --health checks that each partition has a leader and all its replicas.
    """
    if versions and (topics or internal or health):
        raise click.UsageError("--versions shows only APIs of brokers: leave out the topics, --internal and --health")
    with client.admin() as admin:
        if health:
            print_health(_describe(admin, topics, internal or not topics), as_json)
            return
        if versions:
            found = admin.describe_versions()
            numbers = {node: number for number, node in admin.cluster.nodes.items()}
            described = [_broker_fields(numbers[node], node) | _versions(its) for node, its in found.items()]
        else:
            described = [_describe(admin, topics, internal)]
    for each in described:
        if as_json:
            print_json(each)
        elif versions:
            _print_versions(each)
        else:
            _print(each)


def _describe(admin: Admin, topics: tuple[str, ...], internal: bool) -> dict[str, Any]:
    from hmb.client.admin import raised

    from .topic_description import partition_fields, topic_fields

    cluster = admin.describe_cluster()
    found = [raised(topic) for topic in admin.describe_topics(topics or None).values()]
    return {
        "cluster_id": cluster.cluster_id,
        "controller": None if cluster.controller_id < 0 else cluster.controller_id,
        "brokers": [_broker_fields(it.broker_id, it) | {"rack": it.rack} for it in cluster.brokers],
        "topics": [
            topic_fields(topic) | {"partitions": [partition_fields(partition) for partition in topic.partitions]}
            for topic in sorted(found)
            if topics or internal or not topic.is_internal
        ],
    }


def _broker_fields(number: int, address: Any) -> dict[str, Any]:
    return {"broker": number, "host": address.host, "port": address.port}


def print_health(cluster: dict[str, Any], as_json: bool) -> None:
    """Print that the cluster is healthy, or raise a CliError that lists all problems.

    If `as_json` is true, print a JSON object, even if a CliError follows.
    """
    partitions = [(topic["topic"], partition) for topic in cluster["topics"] for partition in topic["partitions"]]
    problems = [f"{name}-{it['partition']}: {why}" for name, it in partitions if (why := _problem(it)) is not None]
    counts = f"{plural(len(cluster['brokers']), 'broker')}, {plural(len(partitions), 'partition')}"
    if as_json:
        print_json({"healthy": not problems, "problems": problems})
    elif not problems:
        click.echo(f"healthy: {counts}")
    if problems:
        raise CliError(f"not healthy: {'; '.join(problems)} (the cluster has {counts})")


def _problem(partition: dict[str, Any]) -> str | None:
    """Return what is wrong with a partition, or None."""
    if partition["leader"] is None:
        return "no leader"
    if missing := sorted(set(partition["replicas"]) - set(partition["isr"])):
        return f"replicas that are not in sync: {', '.join(map(str, missing))}"
    return None


def _print(cluster: dict[str, Any]) -> None:
    brokers, topics = cluster["brokers"], cluster["topics"]
    controller = "unknown" if cluster["controller"] is None else cluster["controller"]
    counts = f"{plural(len(brokers), 'broker')}, {plural(len(topics), 'topic')}"
    click.echo(f"cluster {cluster['cluster_id'] or 'without an id'}, controller {controller}, {counts}\n")
    print_rows(BROKER, brokers, as_json=False)
    if topics:
        click.echo()
        rows = [{"topic": topic["topic"]} | partition for topic in topics for partition in topic["partitions"]]
        print_rows(PARTITION, rows, as_json=False)


def _versions(its: BrokerVersions) -> dict[str, Any]:
    """Return the features of a broker, and three values about each API that the broker supports.

    The three values about an API are:

    - the versions that the broker supports, as a list of the lowest and the highest version, for example [0, 13]
    - the versions that HMB's client supports, in the same form, or None if the client does not support the API
    - the highest version that the broker and the client both support, or None if there is no common version
    """
    from hmb.protocol.api_keys import ApiKey
    from hmb.protocol.messages import API_KEYS, request_class

    names = {int(key): key.name for key in ApiKey}
    apis = []
    for key, theirs in sorted(its.apis.items()):
        ours = request_class(key).versions if key in API_KEYS else range(0)
        common = range(max(ours.start, theirs.start), min(ours.stop, theirs.stop))
        versions = ([theirs[0], theirs[-1]], [ours[0], ours[-1]] if ours else None, common[-1] if common else None)
        apis.append(dict(zip(API, (key, names.get(key), *versions), strict=True)))
    return {"features": dict(its.features), "apis": apis}


def _print_versions(broker: dict[str, Any]) -> None:
    click.echo(f"broker {broker['broker']}, {broker['host']}:{broker['port']}, {plural(len(broker['apis']), 'API')}")
    for feature, level in sorted(broker["features"].items()):
        click.echo(f"{feature}={level}")
    rows = [{key: _span(value) for key, value in api.items()} for api in broker["apis"]]
    print_rows(API, rows, as_json=False)


def _span(value: object) -> object:
    return f"{value[0]}-{value[1]}" if isinstance(value, list) else value
