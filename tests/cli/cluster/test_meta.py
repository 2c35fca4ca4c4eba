"""Tests of `hmb meta`: the brokers, topics and leaders of a cluster, and the APIs of its brokers."""

import json

import pytest

import hmb
from hmb.cli.cluster.meta import print_health
from hmb.cli.shared.errors import CliError
from tests.cli.conftest import Hmb


def test_brokers_and_partitions(run: Hmb, servers: str) -> None:
    host, _, port = servers.partition(":")
    with hmb.Admin(servers) as admin:
        admin.create_topics(["seen"])
        cluster_id = admin.describe_cluster().cluster_id
    head, _, brokers, broker, _, partitions, *rows = run("meta", "-b", servers).stdout.splitlines()
    assert head == f"cluster {cluster_id}, controller 0, 1 broker, 1 topic"
    assert brokers.split() == ["broker", "host", "port", "rack"]
    assert broker.split() == ["0", host, port, "-"]
    assert partitions.split() == ["topic", "partition", "leader", "replicas", "isr", "offline"]
    assert [row.split() for row in rows] == [["seen", str(number), "0", "0", "0", "-"] for number in range(3)]
    described = json.loads(run("meta", "-t", "seen", "--json", "-b", servers).stdout)
    assert described["brokers"] == [{"broker": 0, "host": host, "port": int(port), "rack": None}]
    assert len(described["topics"][0]["topic_id"]) == 36
    assert described["topics"][0]["partitions"][2]["isr"] == [0]


def test_the_apis_of_the_broker(run: Hmb, servers: str) -> None:
    head, *lines = run("meta", "--versions", "-b", servers).stdout.splitlines()
    assert head.startswith(f"broker 0, {servers}, ")
    produce = next(line.split() for line in lines if " PRODUCE " in line)
    assert produce[:2] == ["0", "PRODUCE"]
    assert produce[2].startswith("0-")
    described = json.loads(run("meta", "--versions", "--json", "-b", servers).stdout)
    assert (described["broker"], f"{described['host']}:{described['port']}") == (0, servers)
    assert described["apis"][0]["hmb_versions"][0] == 0


def test_a_healthy_cluster_has_exit_code_0(run: Hmb, servers: str) -> None:
    with hmb.Admin(servers) as admin:
        admin.create_topics(["seen"])
    assert run("meta", "--health", "-b", servers).stdout == "healthy: 1 broker, 3 partitions\n"
    assert json.loads(run("meta", "--health", "--json", "-b", servers).stdout) == {"healthy": True, "problems": []}
    assert "leave out the topics" in run("meta", "--health", "--versions", "-b", servers, exit_code=2).stderr
    assert "nobody listens on" in run("meta", "--health", "-b", "127.0.0.1:1", exit_code=4).stderr


def test_problems_of_partitions_are_one_clear_line() -> None:
    healthy = {"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [2, 1]}
    partitions = [healthy, healthy | {"partition": 1, "leader": None}, healthy | {"partition": 2, "isr": [1]}]
    cluster = {"brokers": [{}, {}], "topics": [{"topic": "t", "partitions": partitions}]}
    with pytest.raises(CliError) as raised:
        print_health(cluster, as_json=False)
    problems = "t-1: no leader; t-2: replicas that are not in sync: 2"
    assert str(raised.value) == f"not healthy: {problems} (the cluster has 2 brokers, 3 partitions)"


def test_missing_topics_and_partitions_are_reported(run: Hmb, servers: str) -> None:
    assert "there is no topic 'nowhere'" in run("meta", "nowhere", "-b", servers, exit_code=3).stderr
    assert "leave out the topics" in run("meta", "t", "--versions", "-b", servers, exit_code=2).stderr
    assert "nobody listens on" in run("meta", "-b", "127.0.0.1:1", exit_code=4).stderr
