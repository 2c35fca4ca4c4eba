"""Tests of the monitoring page in a headless Chromium, with 10,000 topics and with as many changes as in a whole day.

A broker would need a minute to create these topics. So the tests serve the state of a small broker, in which one topic
is copied 10,000 times.

During a whole day, a page receives many changes. A test cannot run for a day, so it serves a state that changes much
faster than the state of a real broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

import hmb
from hmb.bench.load.chromium import CHROMIUM, ChromiumTab, browser
from hmb.monitoring.http_server import HttpServer
from hmb.monitoring.page.feed import OWN_PACE, Pace
from hmb.monitoring.page.routes import PAGE, PageRoutes
from hmb.monitoring.state import BrokerState, ConnectionInfo, EventInfo
from tests.waiting import until

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)"),
]
TOPICS = 10_000
# for a test of many changes; its clock measures no cost, so the feed takes no rest
FAST = Pace(0.005, 1.0, lambda: 0.0)


def many_topics() -> BrokerState:
    with hmb.Broker() as broker:
        broker.create_topic("orders")
        broker.produce("orders", "tea")
        state = broker.state()
    return replace(state, topics=[replace(state.topics[0], name=f"topic-{n:05}") for n in range(TOPICS)])


@contextmanager
def page_of(current: Callable[[], BrokerState], pace: Pace = OWN_PACE) -> Iterator[ChromiumTab]:
    """Open the monitoring page in Chromium, and yield the browser tab.

    The function `current` returns the state of a broker. The page's server calls this function several times a second,
    and the page shows the newest state.
    """
    server = HttpServer("127.0.0.1", 0)
    routes = PageRoutes(server, current, pace)
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


@pytest.fixture
def tab() -> Iterator[ChromiumTab]:
    state = many_topics()
    with page_of(lambda: state) as tab:
        yield tab


def test_the_page_shows_the_first_topics_and_finds_each_one(tab: ChromiumTab) -> None:
    tab.until("document.querySelectorAll('tbody tr').length === 500", "the first topics")
    assert "10,000 topics, 10,000 partitions" in tab.text(".headline")
    assert "9,500 more topics; use the filter" in tab.text("main")
    tab.run("document.getElementById('filter').value = 'topic-09999'")
    tab.run("document.getElementById('filter').dispatchEvent(new Event('input'))")
    assert [row[:3] for row in tab.rows("Topics")] == [["topic-09999", "1", "1"]]
    tab.go("topic/topic-09999")
    tab.until("document.querySelectorAll('.lane').length === 1", "the partition of the topic")


class ChangingState:
    """A simulated broker. Each call of the object returns the next state of this broker.

    In the next state, ten events are added, and ten new clients replace the ten connected clients. While the attribute
    `is_still` is true, each call returns the same state.
    """

    EVENTS, NEW_EVENTS, CLIENTS = 100, 10, 10

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self.calls = 0
        self.is_still = False

    @property
    def last_event(self) -> str:
        return f"a new segment begins at offset {self.NEW_EVENTS * self.calls - 1}"

    def __call__(self) -> BrokerState:
        self.calls += not self.is_still
        now, last = self._state.time + 1000 * self.calls, self.NEW_EVENTS * self.calls
        return replace(
            self._state,
            time=now,
            events=[
                EventInfo(number, now - last + number, "roll", f"orders-0: a new segment begins at offset {number}")
                for number in range(max(0, last - self.EVENTS), last)
            ],
            connections=[
                ConnectionInfo(f"10.0.{self.calls}.{n}:1", None, None, None, None, None, 1) for n in range(self.CLIENTS)
            ],
        )


def size_of(tab: ChromiumTab) -> tuple[int, int]:
    """Return the number of elements of the page, and the bytes of its objects after a garbage collection."""
    tab.send("HeapProfiler.collectGarbage")
    return tab.run("document.querySelectorAll('*').length"), int(tab.send("Runtime.getHeapUsage")["usedSize"])


def test_a_page_that_is_open_for_a_day_does_not_grow() -> None:
    """The size of the page stays almost the same while the page receives more than 450 changes.

    The test pauses and resumes the page before it measures the size for the first time. At the first pause, the browser
    compiles JavaScript functions and keeps the compiled code. So both measurements include this code.
    """
    with hmb.Broker() as broker:
        broker.create_topic("orders")
        current = ChangingState(broker.state())
    with page_of(current, FAST) as tab:
        for view in ("clients", "events"):
            tab.go(view)
        until(lambda: current.calls > 50, "changes of the state", pause=0.1)
        pause_until_changes_are_applied(tab, current)
        before = size_when_still(tab, current)
        pause_until_changes_are_applied(tab, current)
        after = size_when_still(tab, current)
        assert after[0] == before[0] and after[1] < before[1] + 500_000, (before, after)


def pause_until_changes_are_applied(tab: ChromiumTab, current: ChangingState) -> None:
    """Pause the page until more than 450 changes have arrived, and then end the pause.

    During a pause, new changes wait in a queue of at most 400 changes. If one more change arrives, the page removes the
    oldest change from the queue and applies it.
    """
    tab.run("document.getElementById('pause').click()")
    until(lambda: "400 changes wait" in tab.text("#connection"), "400 changes that wait", pause=0.1)
    now = current.calls
    until(lambda: current.calls > now + 50, "more changes than the page keeps", pause=0.1)
    assert "400 changes wait" in tab.text("#connection")
    tab.run("document.getElementById('pause').click()")


def size_when_still(tab: ChromiumTab, current: ChangingState) -> tuple[int, int]:
    """Stop the changes, wait until the page shows the last event, and return the size of the page."""
    current.is_still = True
    until(lambda: current.last_event in tab.text("main"), "the last event", pause=0.1)
    size = size_of(tab)
    current.is_still = False
    return size
