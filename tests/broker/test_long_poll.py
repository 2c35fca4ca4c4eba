"""Tests of `long_poll` with a simulated poll instead of a log.

The test simulates a new record. The request must then end, and remove its watcher from each `Watchers` object.
"""

from __future__ import annotations

import threading

import pytest

from hmb.broker.context import ConnectedClient, RequestContext
from hmb.broker.long_poll import long_poll
from hmb.protocol.headers import RequestHeader
from hmb.storage.watchers import Watchers
from tests.broker.conftest import LISTENER, Asker
from tests.waiting import until


class Poll:
    """A simulated poll that finds a second `Watchers` object only at the second call of `collect`.

    The same can happen in a ShareFetch request: the `Watchers` object of a share-partition is not available until the
    broker has loaded the state of the share-partition.
    """

    def __init__(self) -> None:
        self.places = [Watchers(), Watchers()]
        self.watched: list[Watchers] = []
        self.is_satisfied = False
        self.has_record = False

    def collect(self) -> None:
        self.watched = self.places[: len(self.watched) + 1]
        self.is_satisfied = self.has_record


@pytest.mark.parametrize("place", [0, 1])
def test_each_place_wakes_the_request_also_one_that_was_found_later(
    ask: Asker, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    monkeypatch.setattr("hmb.broker.long_poll.LOG_CHECK_INTERVAL", 1000)
    poll = Poll()
    context = RequestContext(ask.broker, LISTENER, RequestHeader(), ConnectedClient("192.0.2.1"))
    thread = threading.Thread(target=long_poll, args=(poll, 500_000, context))
    thread.start()
    until(lambda: all(each._watchers for each in poll.places), "the request to watch both places")
    poll.has_record = True
    poll.places[place].wake_all()
    thread.join(30)
    assert not thread.is_alive()
    assert [each._watchers for each in (*poll.places, ask.broker.stop.watchers)] == [set(), set(), set()]
