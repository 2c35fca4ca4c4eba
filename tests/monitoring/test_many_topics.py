"""Tests of the page with 10,000 topics, in a headless Chromium.

A broker would need a minute to create these topics. So the tests serve the state of a small broker, in which one topic
is copied 10,000 times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import hmb
from hmb.bench.load.chromium import CHROMIUM, ChromiumTab, browser
from hmb.monitoring.http_server import HttpServer
from hmb.monitoring.page.routes import PAGE, PageRoutes
from hmb.monitoring.state import BrokerState

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)"),
]
TOPICS = 10_000


def many_topics() -> BrokerState:
    with hmb.Broker() as broker:
        broker.create_topic("orders")
        broker.produce("orders", "tea")
        state = broker.state()
    return replace(state, topics=[replace(state.topics[0], name=f"topic-{n:05}") for n in range(TOPICS)])


@pytest.fixture
def tab() -> Iterator[ChromiumTab]:
    state = many_topics()
    server = HttpServer("127.0.0.1", 0)
    routes = PageRoutes(server, lambda: state)
    server.start()
    try:
        with browser() as tab:
            tab.look()
            tab.open(f"http://{server.address}{PAGE}?token={server.token}")
            yield tab
            assert tab.problems() == []
    finally:
        routes.stop()
        server.stop()


def test_the_page_shows_the_first_topics_and_finds_each_one(tab: ChromiumTab) -> None:
    tab.until("document.querySelectorAll('tbody tr').length === 500", "the first topics")
    assert "10,000 topics, 10,000 partitions" in tab.text(".headline")
    assert "9,500 more topics; use the filter" in tab.text("main")
    tab.run("document.getElementById('filter').value = 'topic-09999'")
    tab.run("document.getElementById('filter').dispatchEvent(new Event('input'))")
    assert [row[:3] for row in tab.rows("Topics")] == [["topic-09999", "1", "1"]]
    tab.go("topic/topic-09999")
    tab.until("document.querySelectorAll('.lane').length === 1", "the partition of the topic")
