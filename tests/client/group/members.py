"""Group members for tests, with functions that change topics and wait for the end of a rebalance."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

import hmb
from hmb.client.consuming import building
from hmb.client.consuming.settings import ConsumerSettings
from hmb.client.group.interface import MemberSettings
from hmb.client.group.membership import join_group
from hmb.client.metadata import Cluster
from hmb.client.settings import with_defaults
from hmb.protocol.messages.create_partitions import CreatePartitionsRequest
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.topics import TopicPartition
from tests.waiting import until

GROUP_CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "log.flush.acks.all": "false",
}

EAGER: dict[str, Any] = {"assignors": ("range",)}
COOPERATIVE: dict[str, Any] = {"assignors": ("cooperative-sticky",)}
CONSUMER: dict[str, Any] = {"group_protocol": "consumer"}
KINDS = [pytest.param(EAGER, id="eager"), pytest.param(COOPERATIVE, id="cooperative"), pytest.param(CONSUMER, id="848")]

OnCall = Callable[["Member", str, frozenset[TopicPartition]], None]


def member_settings(group_id: str = "g", **settings: Any) -> MemberSettings:
    """Return the settings of a member. Each setting that is not in `settings` has the consumer's default."""
    defaults = cast(ConsumerSettings, with_defaults(ConsumerSettings, {}, "Consumer"))
    return replace(building.member_settings(group_id, defaults), **settings)


@contextmanager
def group_servers() -> Iterator[str]:
    """Yield the address of a broker with GROUP_CONFIG.

    The broker is HMB, unless HMB_TEST_SERVERS names another one (tests/conformance).
    """
    given = os.environ.get("HMB_TEST_SERVERS")
    if given:
        yield given
        return
    with hmb.Broker(config=GROUP_CONFIG) as broker:
        yield broker.bootstrap_servers


class Member:
    """A group member that records the calls to its rebalance listener.

    The list `events` contains the name and the partitions of each call. If a test passes the function `on_call`, the
    member runs this function during each call.
    """

    def __init__(self, servers: str, group: str, *topics: str, on_call: OnCall | None = None, **settings: Any) -> None:
        self.events: list[tuple[str, frozenset[TopicPartition]]] = []
        self.on_call = on_call
        self.cluster = Cluster(servers)
        settings = {"heartbeat_interval": 0.02, "retry_backoff": 0.01, **settings}
        self.membership = join_group(self.cluster, member_settings(group, **settings), self)
        self.membership.subscribe(topics)

    def _note(self, name: str, partitions: Collection[TopicPartition]) -> None:
        self.events.append((name, frozenset(partitions)))
        if self.on_call is not None:
            self.on_call(self, name, frozenset(partitions))

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._note("assigned", partitions)

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._note("revoked", partitions)

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._note("lost", partitions)

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return self.membership.assignment

    def poll(self) -> Member:
        self.membership.poll(0)
        return self

    def close(self) -> None:
        self.membership.close()
        self.cluster.close()


def make_topic(servers: str, name: str, partitions: int) -> frozenset[TopicPartition]:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    cluster = Cluster(servers)
    made = cluster.send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000)).topics[0]
    cluster.close()
    assert made.error_code == 0, made
    return frozenset(TopicPartition(name, number) for number in range(partitions))


def add_partitions(servers: str, name: str, count: int) -> None:
    cluster = Cluster(servers)
    topic = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=None)
    made = cluster.send(CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)).results[0]
    cluster.close()
    assert made.error_code == 0, made


def share(members: Iterable[Member], partitions: frozenset[TopicPartition]) -> None:
    """Poll until each partition has one owner, every member owns partitions, and no rebalance is in progress."""
    everybody = list(members)

    def are_shared_out() -> bool:
        for member in everybody:
            member.poll()
        owned = [partition for member in everybody for partition in member.owned]
        at_rest = len({member.membership.metadata.generation_id for member in everybody}) == 1
        return at_rest and all(member.owned for member in everybody) and sorted(owned) == sorted(partitions)

    until(are_shared_out, f"{len(everybody)} members share {len(partitions)} partitions")
