"""Tests of the monitoring page with five questions that a user asks about a broker.

The page is open in Chromium. The text of the page must answer each question. Each question has one correct answer,
because the fixture creates the situation: a slow group, a member that leaves, a client without compression, and a topic
whose old segments are deleted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

import hmb
from hmb.bench.load.chromium import CHROMIUM, ChromiumTab, browser
from hmb.broker import BrokerServer
from hmb.monitoring.collecting import collect
from hmb.monitoring.ports import HttpAddress, MonitoringPorts
from tests.monitoring.page_load import CONFIG, choose
from tests.waiting import until

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)"),
]
RECORDS, READ = 200, 50  # the numbers of sent and of read records, in each of the two partitions of "orders"
QUICK = CONFIG | {"log.retention.check.interval.ms": "300", "log.segment.delete.delay.ms": "0"}


def produce(servers: str, topic: str, client: str, codec: Any, partition: int = 0) -> None:
    with hmb.Producer(servers, client_id=client, compression=codec) as producer:
        for number in range(RECORDS):
            producer.send(topic, b"order %d" % number, partition=partition).result()


@contextmanager
def connected(servers: str, client: str, codec: Any) -> Iterator[None]:
    """Send one batch to orders-0, and keep the producer connected until the `with` block ends."""
    with hmb.Producer(servers, client_id=client, compression=codec) as producer:
        producer.send("orders", b"the last order", partition=0).result()
        yield


class Member:
    """A member of the group "billing" in a thread of its own."""

    def __init__(self, servers: str, client: str) -> None:
        self._servers, self._client = servers, client
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        settings: dict[str, Any] = {"group": "billing", "client_id": self._client, "auto_commit_interval": 0.2}
        with hmb.Consumer(self._servers, "orders", **settings) as consumer:
            while not self._stop.is_set():
                consumer.poll(timeout=0.05)

    def leave(self) -> None:
        self._stop.set()
        self._thread.join(30)


def members(broker: BrokerServer) -> list[str]:
    """Return the client ids of the members of the group "billing". Members without partitions are left out."""
    groups = [group for group in collect(broker).groups if group.group_id == "billing"]
    return sorted(member.client_id for group in groups for member in group.members if member.partitions)


@pytest.fixture(scope="module")
def tab() -> Iterator[ChromiumTab]:
    with BrokerServer(config=QUICK) as broker, ExitStack() as stack:
        servers = broker.bootstrap_servers
        with hmb.Admin(servers) as admin:
            orders = {"segment.bytes": "5000", "index.interval.bytes": "500"}
            visits = {"segment.bytes": "4000", "retention.bytes": "8000"}
            admin.create_topics([hmb.NewTopic("orders", 2, configs=orders), hmb.NewTopic("visits", 1, configs=visits)])
        ports = MonitoringPorts(ui=HttpAddress("127.0.0.1", 0))
        ports.start(broker)
        stack.callback(ports.stop)
        for partition in range(2):
            produce(servers, "orders", "importer", "gzip", partition)
        produce(servers, "visits", "tracker", "zstd")
        for client, codec in {"checkout": "gzip", "legacy-exporter": "none", "shop": "lz4"}.items():
            stack.enter_context(connected(servers, client, codec))
        with hmb.Consumer(servers, group="audit") as consumer:
            partitions = [hmb.TopicPartition("orders", number) for number in range(2)]
            consumer.assign(partitions)
            consumer.commit(dict.fromkeys(partitions, READ))
        ada = Member(servers, "ada")
        stack.callback(ada.leave)
        until(lambda: members(broker) == ["ada"], "ada is a member", pause=0.05)
        bob = Member(servers, "bob")
        until(lambda: members(broker) == ["ada", "bob"], "bob is a member", pause=0.05)
        bob.leave()
        until(lambda: members(broker) == ["ada"], "bob has left", pause=0.05)
        tab = stack.enter_context(browser())
        tab.look()
        tab.open(ports.urls["ui"])
        tab.until("document.querySelector('tbody tr') !== null", "the topics are drawn")
        yield tab
        assert tab.problems() == []


def test_where_is_offset_123_of_orders_1(tab: ChromiumTab) -> None:
    """The look-up shows the byte at which the batch with offset 123 begins. A link opens this batch."""
    tab.go("topics")
    tab.run("document.querySelector('nav a[data-view=look-up]').click()")
    tab.until("document.querySelector('form.form') !== null", "the form")
    for label, value in {"Offset": "123", "Topic": "orders", "Partition": "1"}.items():
        tab.run(f"document.querySelector('form input[aria-label^={label}]').value = '{value}'")
    tab.run("document.querySelector('form.form').requestSubmit()")
    tab.until("document.querySelectorAll('.steps > li').length === 3", "the steps")
    assert tab.text("main p[role=status]").startswith("Offset 123 is in the batch at byte ")
    tab.run("document.querySelector('main p[role=status] a').click()")
    tab.until("document.querySelector('pre') !== null", "the batch")
    assert [(row[0], row[3]) for row in tab.rows("Records")] == [("123", "order 123")]


def test_who_lags(tab: ChromiumTab) -> None:
    """In the table of groups, the group with the greatest lag is in the first row.

    For each partition, the view of a group shows the group's lag and the member that reads the partition.
    """
    tab.go("groups")
    tab.until("document.querySelectorAll('tbody tr').length === 2", "both groups")
    assert tab.rows("Groups")[0][:2] == ["audit", str(2 * (RECORDS - READ) + 3)]
    tab.go("group/audit")
    lags = [(row[0], row[2], row[4]) for row in tab.rows("Committed offsets")]
    assert lags == [("orders-0", "153", "no member"), ("orders-1", "150", "no member")]
    tab.go("group/billing")
    members = ["ada", "ada"]
    until(lambda: [row[4] for row in tab.rows("Committed offsets")] == members, "both partitions of ada", pause=0.1)


def test_why_did_billing_rebalance(tab: ChromiumTab) -> None:
    """The view of the group lists its rebalances, newest first, each with its cause."""
    tab.go("group/billing")
    causes = [row[2].partition(", because ")[2] for row in tab.rows("Events of this group")]
    assert len(causes) == 3
    assert causes[0].startswith("member bob-") and causes[0].endswith(" leaves (the consumer was closed)")
    assert causes[1].startswith("the new member bob-") and causes[1].endswith(" joins")


def test_which_client_sends_uncompressed_batches(tab: ChromiumTab) -> None:
    """Clients that have produced are at the top. With a codec in the filter, only clients with this codec remain."""
    tab.go("clients")
    assert [(row[1], row[4]) for row in tab.rows("Connections")[:3]] == [
        ("checkout", "gzip"), ("legacy-exporter", "none"), ("shop", "lz4")
    ]  # fmt: skip
    choose(tab, "filter", "none", "input")
    assert [row[1] for row in tab.rows("Connections")] == ["legacy-exporter"]


def test_what_did_retention_delete(tab: ChromiumTab) -> None:
    """The view of the events shows which offsets retention has deleted.

    The deleted offsets begin at 0. The last deleted offset is one less than the partition's log start offset.
    """
    tab.go("partition/visits/0")
    tab.until("document.body.innerText.includes('visits-0: deleted the records at offsets 0 to ')", "the deletion")
    start = int(tab.text(".headline").split()[1])
    tab.go("events")
    choose(tab, "kind", "retention", "change")
    choose(tab, "filter", "visits-0", "input")
    texts = [row[2] for row in tab.rows("Events")]
    ranges = [text.partition("at offsets ")[2].split()[:3:2] for text in texts]
    assert ranges[-1][0] == "0" and int(ranges[0][1]) == start - 1
