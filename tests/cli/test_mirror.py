"""`hmb mirror` copies topics between two brokers, and prints its progress for people and for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import hmb
from tests.cli.conftest import Hmb, start
from tests.waiting import until


@pytest.fixture
def source() -> Iterator[hmb.Broker]:
    with hmb.Broker(config={"log.flush.acks.all": "false"}) as broker:
        yield broker


@pytest.fixture
def target() -> Iterator[hmb.Broker]:
    with hmb.Broker(config={"log.flush.acks.all": "false"}) as broker:
        yield broker


def sides(source: hmb.Broker, target: hmb.Broker) -> list[str]:
    return ["mirror", "--from", source.bootstrap_servers, "--to", target.bootstrap_servers]


def test_once_copies_the_chosen_topics(source: hmb.Broker, target: hmb.Broker, run: Hmb) -> None:
    for topic in ("orders", "orders-old", "payments"):
        source.create_topic(topic)
        source.produce(topic, "a", "b", key="k")
    result = run(*sides(source, target), "--once", "--topics", "orders.*", "--exclude", ".*-old")
    assert target.topics() == ["orders"]
    assert [(it.key, it.value) for it in target.records("orders")] == [(b"k", b"a"), (b"k", b"b")]
    assert result.stderr.startswith("2 records in 1 partition, ")
    assert result.stderr.endswith(" records/s, lag 0; offsets kept in 1 partition; 0 offsets of groups\n")
    assert result.stdout == ""


def test_json_lines_name_each_partition_and_each_offset_of_a_group(
    source: hmb.Broker, target: hmb.Broker, run: Hmb
) -> None:
    source.create_topic("orders", partitions=2)
    source.produce("orders", "a", "b")
    partition = hmb.TopicPartition("orders", 0)
    with hmb.Admin(source.bootstrap_servers) as admin:
        admin.alter_group_offsets("billing", {partition: 1})
    lines = [json.loads(line) for line in run(*sides(source, target), "--once", "--json").stdout.splitlines()]
    figures = {"type": "partition", "topic": "orders", "target": "orders", "lag": 0, "offsets": "kept"}
    assert lines[0] == figures | {"partition": 0, "position": 2, "records": 2}
    assert lines[1] == figures | {"partition": 1, "position": 0, "records": 0}
    group = {"type": "group", "group": "billing", "topic": "orders", "partition": 0, "target": "orders"}
    assert lines[2] == group | {"offset": 1, "target_offset": 1}
    assert lines[3]["type"] == "end"
    assert (lines[3]["records"], lines[3]["lag"]) == (2, 0)


def test_each_side_has_its_own_settings(source: hmb.Broker, target: hmb.Broker, run: Hmb, tmp_path: Path) -> None:
    (tmp_path / "from").write_text("client.id=reader\n")
    (tmp_path / "to").write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n")
    files = ["--from-config", str(tmp_path / "from"), "--to-config", str(tmp_path / "to")]
    result = run(*sides(source, target), "--once", *files, exit_code=2)
    assert result.stderr.startswith(f"hmb: {tmp_path}/to: sasl.mechanism")
    source.create_topic("orders")
    run(*sides(source, target), "--once", *files[:2])
    assert target.topics() == ["orders"]


def test_one_side_can_require_tls_and_a_login(source: hmb.Broker, run: Hmb, tmp_path: Path) -> None:
    source.create_topic("orders")
    source.produce("orders", "a", "b")
    settings = tmp_path / "to"
    with hmb.Broker(users={"alice": "secret"}, tls=True) as target:
        settings.write_text("".join(f"{name}={value}\n" for name, value in target.security.items()))
        result = run(*sides(source, target), "--once", "--to-config", str(settings))
        assert result.stderr.startswith("2 records in 1 partition, ")
        copy = hmb.Consumer(target.bootstrap_servers, "orders", until="end", security=target.security)
        assert [it.value for it in copy] == [b"a", b"b"]


def test_a_mirror_into_its_own_source_is_refused(source: hmb.Broker, run: Hmb) -> None:
    result = run(*sides(source, source), exit_code=1)
    assert result.stderr.startswith("hmb: source and target are the same cluster (cluster id ")


def test_no_topic_matches(source: hmb.Broker, target: hmb.Broker, run: Hmb) -> None:
    result = run(*sides(source, target), "--once", "--topics", "nothing", exit_code=3)
    assert result.stderr == "hmb: source: no topic matches; `hmb topics list` shows the topics\n"


def test_nobody_listens_at_the_target(source: hmb.Broker, target: hmb.Broker, run: Hmb) -> None:
    target.stop()
    result = run(*sides(source, target), "--once", exit_code=4)
    assert result.stderr == f"hmb: nobody listens on {target.bootstrap_servers}; check --from and --to\n"


def test_sigterm_stops_a_continuous_mirror_after_a_commit(source: hmb.Broker, target: hmb.Broker) -> None:
    source.create_topic("orders")
    source.produce("orders", "a", "b")
    process = start(*sides(source, target), "--transactions")
    try:
        until(lambda: "orders" in target.topics() and len(target.records("orders")) == 2)
        process.terminate()
        _output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert errors.decode().splitlines()[-1].startswith("2 records in 1 partition, ")
    values = [it.value for it in hmb.Consumer(
        target.bootstrap_servers, "orders", until="end", isolation_level="read_committed"
    )]
    assert values == [b"a", b"b"]
