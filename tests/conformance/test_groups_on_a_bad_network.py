"""Tests of a group on an unreliable network: three members leave and rejoin, each through its own proxy.

The networks cut connections, and delay and lose requests. A group promises "at least once". So every record must reach
a member, and in the end the committed offsets must equal the log end offsets. The application must not see an error,
because all these failures are temporary.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest

import hmb
from hmb.client.group.commits import CommittedOffsets
from hmb.client.group.membership import group_offsets
from hmb.client.metadata import Cluster
from hmb.protocol.topics import TopicPartition
from tests.client.group.members import GROUP_CONFIG, KINDS, make_topic, member_settings
from tests.conformance.unreliable import Unreliable
from tests.waiting import until

MEMBERS, PARTITIONS, RECORDS = 3, 6, 1_000  # RECORDS is the number of records in each partition.
READS = 300  # After this number of records a member leaves the group and joins it again.

pytestmark = pytest.mark.slow


@pytest.fixture
def servers() -> Iterator[str]:
    with hmb.Broker(config=GROUP_CONFIG) as broker:
        yield broker.bootstrap_servers


def read(network: Unreliable, is_over: threading.Event, found: set[tuple[int, int]], kind: dict[str, Any]) -> None:
    """Read records as a member of the group until `is_over` is set. The member commits its positions every 0.1 s."""
    with hmb.Consumer(
        network.address,
        "t",
        group="g",
        heartbeat_interval=0.1,
        session_timeout=6.0,
        max_poll_interval=6.0,  # This setting limits the wait for a response that was lost.
        request_timeout=2.0,
        max_wait_ms=50,
        auto_commit_interval=0.1,
        **kind,
    ) as consumer:
        count = 0
        while not is_over.is_set():
            records = consumer.poll(0.1)
            found.update((record.partition, record.offset) for record in records)
            count += len(records)
            if count >= READS:
                consumer.unsubscribe()
                consumer.subscribe("t")
                count = 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_record_is_delivered_and_committed(servers: str, kind: dict[str, Any]) -> None:
    partitions = make_topic(servers, "t", PARTITIONS)
    every = {(partition, offset) for partition in range(PARTITIONS) for offset in range(RECORDS)}
    is_over, found = threading.Event(), [set[tuple[int, int]]() for _ in range(MEMBERS)]
    with ExitStack() as stack, ThreadPoolExecutor(MEMBERS) as pool:
        networks = [stack.enter_context(Unreliable(servers, seed)) for seed in range(MEMBERS)]
        stack.callback(is_over.set)
        reading = [pool.submit(read, networks[it], is_over, found[it], kind) for it in range(MEMBERS)]
        until(lambda: all(str(network).count("passed") == 2 for network in networks), "first contact")
        for network in networks:
            network.calm = False
        with hmb.Producer(servers) as producer:
            for number in range(RECORDS):
                for partition in range(PARTITIONS):
                    producer.send("t", b"%d" % number, partition=partition)
        until(lambda: set().union(*found) == every or any(each.done() for each in reading), "all are delivered")
        for network in networks:
            network.calm = True
        # A member that leaves during a rebalance may not commit, so the members commit before the end of the test.
        with closing(group_offsets(Cluster(servers), member_settings())) as offsets:
            ends = dict.fromkeys(partitions, RECORDS)
            until(lambda: committed(offsets, partitions) == ends or any(each.done() for each in reading), "commits")
            assert committed(offsets, partitions) == ends
        is_over.set()
        for each in reading:
            each.result()


def committed(offsets: CommittedOffsets, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
    found = offsets.committed(partitions)
    return {partition: None if it is None else it.offset for partition, it in found.items()}
