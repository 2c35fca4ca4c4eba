"""Tests of an open page while topics, groups and the broker disappear, and while a client sends a huge value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hmb
from hmb.bench.load.chromium import CHROMIUM, ChromiumTab, browser
from hmb.broker import BrokerServer
from hmb.monitoring.ports import HttpAddress, MonitoringPorts
from tests.monitoring.page_load import CONFIG
from tests.monitoring.reopening import opened_again

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)"),
]


@pytest.fixture(scope="module")
def browser_tab() -> Iterator[ChromiumTab]:
    with browser() as tab:
        tab.look()
        yield tab
        assert tab.problems() == []


@pytest.fixture
def broker() -> Iterator[BrokerServer]:
    with BrokerServer(config=CONFIG) as broker:
        with hmb.Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([hmb.NewTopic("orders", 1), hmb.NewTopic("short-lived", 1)])
        with hmb.Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", b"tea").result()
        yield broker


@pytest.fixture
def tab(browser_tab: ChromiumTab, broker: BrokerServer) -> Iterator[ChromiumTab]:
    """Show the page of the broker."""
    ports = MonitoringPorts(ui=HttpAddress("127.0.0.1", 0))
    ports.start(broker)
    browser_tab.open(ports.urls["ui"])
    browser_tab.until("document.querySelector('tbody tr') !== null", "the topics are drawn")
    yield browser_tab
    browser_tab.open("about:blank")
    ports.stop()


def test_a_topic_that_is_deleted_while_open_is_named(tab: ChromiumTab, broker: BrokerServer) -> None:
    tab.go("partition/short-lived/0")
    with hmb.Admin(broker.bootstrap_servers) as admin:
        admin.delete_topics(["short-lived"])
    tab.until("document.body.innerText.includes('The partition short-lived-0 does not exist any more.')")
    tab.go("topic/short-lived")
    tab.until("document.body.innerText.includes('The topic short-lived does not exist any more.')")
    tab.go("topic/nope")
    tab.until("document.body.innerText.includes('No such topic: nope')")
    tab.go("batch/short-lived/0/0/0")
    tab.until("document.body.innerText.includes('the broker has no partition 0 of topic short-lived')")


def test_a_group_that_is_deleted_while_open_is_named(tab: ChromiumTab, broker: BrokerServer) -> None:
    partition = hmb.TopicPartition("orders", 0)
    with hmb.Consumer(broker.bootstrap_servers, group="visitor") as consumer:
        consumer.assign([partition])
        consumer.commit({partition: 1})
    tab.go("group/visitor")
    tab.until("document.body.innerText.includes('Empty, classic protocol, 0 members')", "the group")
    with hmb.Admin(broker.bootstrap_servers) as admin:
        assert admin.delete_groups(["visitor"]) == {"visitor": None}
    tab.until("document.body.innerText.includes('The group visitor does not exist any more.')")


def test_a_value_of_ten_megabytes_is_cut_in_each_view(tab: ChromiumTab, broker: BrokerServer) -> None:
    with hmb.Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([hmb.NewTopic("large", 1, configs={"max.message.bytes": "20000000"})])
    tab.go("requests")
    tab.until("document.querySelectorAll('table').length === 4", "the recording")
    client = hmb.Producer(broker.bootstrap_servers, max_request_size=20_000_000, batch_size=1, client_id="large")
    with client as producer:
        producer.send("large", b"x" * 10_000_000).result()
    row = "[...document.querySelectorAll('tr')].find((it) => /^Produce v[0-9]+large/.test(it.textContent))"
    tab.until(f"{row} !== undefined", "the request is among the slowest")
    tab.run(f"{row}.querySelector('a').click()")
    tab.until("document.querySelector('.columns') !== null", "the request")
    assert any(row[1].startswith("100000") and row[1].endswith(" bytes") for row in tab.rows("Fields of the request"))
    tab.go("batch/large/0/0/0")
    tab.until("document.querySelector('pre') !== null", "the batch")
    (record,) = tab.rows("Records")
    assert record[3] == f"{'x' * 1000}\u2026 (10000000 bytes)"
    assert "more bytes of records[0].value are not shown" in tab.text("pre")
    assert tab.run("document.body.innerHTML.length") < 200_000


def test_the_page_continues_after_a_restart_of_the_broker(browser_tab: ChromiumTab, tmp_path: Path) -> None:
    tab = browser_tab
    with BrokerServer(str(tmp_path)) as broker:
        ports = MonitoringPorts(ui=HttpAddress("127.0.0.1", 0))
        ports.start(broker)
        assert ports.ui is not None
        address = HttpAddress("127.0.0.1", ports.ui.port)
        tab.open(ports.urls["ui"])
        tab.until("document.getElementById('connection').textContent === 'live'")
        ports.stop()
    tab.until("document.getElementById('connection').textContent === 'the broker is away, trying again'")
    with BrokerServer(str(tmp_path)) as broker:
        broker.context.topics.create("later", 1)
        ports = opened_again(ui=address)
        ports.start(broker)
        tab.until("document.getElementById('connection').textContent === 'live'")
        tab.until("document.body.innerText.includes('later')")
        ports.stop()
