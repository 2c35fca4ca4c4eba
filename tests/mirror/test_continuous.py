"""A continuous mirror copies new records, new topics, new partitions, and the progress of groups."""

from __future__ import annotations

import pytest

import hmb
from hmb.mirror import session as module
from hmb.protocol.topics import TopicPartition
from tests.mirror.conftest import MakeMirror, contents


@pytest.fixture(autouse=True)
def quick_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUPS_INTERVAL", 0.1)
    monkeypatch.setattr(module, "TOPICS_INTERVAL", 0.1)


def test_new_records_topics_and_partitions_are_copied(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror
) -> None:
    source.create_topic("orders")
    source.produce("orders", "a")

    def change() -> None:
        if len(steps) == 0 and "orders" in target.topics() and len(target.records("orders")) == 1:
            source.create_topic("payments")
            source.produce("payments", "b")
            steps.append("a new topic")
        elif len(steps) == 1 and "payments" in target.topics() and len(target.records("payments")) == 1:
            with hmb.Admin(source.bootstrap_servers) as admin:
                admin.create_partitions({"orders": 2})
            source.produce("orders", "c", partition=1)
            steps.append("a new partition")
        elif len(steps) == 2 and len(target.records("orders")) == 2:
            run.stop()

    steps: list[str] = []
    run = mirror(is_once=False, observe=change)
    run.run()
    for topic in ("orders", "payments"):
        assert contents(target, topic) == contents(source, topic)
    assert sum(it.records for it in run.partitions.values()) == 3


@pytest.mark.parametrize("transactional", [False, True])
def test_the_offsets_of_groups_follow(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror, transactional: bool
) -> None:
    """The mirror translates a group's committed offset, because the same record can have another offset in the copy.

    If the mirror writes in transactions, the copy contains transaction markers. Each marker takes one offset, so the
    records after the marker have higher offsets in the copy than in the source.
    """
    partition = TopicPartition("orders", 0)
    source.create_topic("orders")
    source.produce("orders", "0")

    def change() -> None:
        with hmb.Admin(source.bootstrap_servers) as admin:
            copied = len(contents(target, "orders"))
            if copied == len(source.records("orders")) < 4:
                source.produce("orders", str(copied))
            if copied == 4:
                admin.alter_group_offsets("billing", {partition: 3})
        if target.committed("billing"):
            run.stop()

    run = mirror(is_once=False, is_transactional=transactional, observe=change)
    run.run()
    with hmb.Consumer(
        target.bootstrap_servers, "orders", group="billing", until="end", isolation_level="read_committed"
    ) as consumer:
        assert [it.value for it in consumer] == [b"3"]


def test_a_mirror_without_topics_waits_for_the_first_one(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror
) -> None:
    def change() -> None:
        if "orders" not in source.topics():
            source.create_topic("orders")
            source.produce("orders", "a")
        elif "orders" in target.topics() and target.records("orders"):
            run.stop()

    run = mirror(is_once=False, observe=change)
    run.run()
    assert contents(target, "orders") == contents(source, "orders")
