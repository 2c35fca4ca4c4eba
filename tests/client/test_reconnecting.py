"""Tests of the pauses between a client's attempts to connect."""

from __future__ import annotations

import socket

import pytest

from hmb.client.backoff import JITTER
from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.reconnecting import FIRST_PAUSE, LONGEST_PAUSE, AddressFailures
from hmb.protocol.messages.metadata import MetadataRequest
from tests.client.scripted_broker import Clock, ScriptedBroker

ADDRESS = "127.0.0.1:9"


def pause_after(failures: int) -> float:
    """Return the pause (in s) after this number of failed connections, rounded to a hundredth."""
    clock = Clock()
    known = AddressFailures(clock)
    for _ in range(failures):
        known.failed(ADDRESS, "it is down")
    while known.recent_failure(ADDRESS):
        clock.now += 0.01
    return clock.now


@pytest.mark.parametrize(
    ("failures", "pause"), [(0, 0), (1, FIRST_PAUSE), (2, 0.1), (3, 0.2), (6, LONGEST_PAUSE), (2000, LONGEST_PAUSE)]
)
def test_the_pause_doubles_up_to_a_limit(failures: int, pause: float) -> None:
    assert pause * (1 - JITTER) <= pause_after(failures) <= pause * (1 + JITTER) + 0.02


def test_the_pauses_of_several_clients_differ() -> None:
    assert len({pause_after(9) for _ in range(100)}) > 5


def test_a_response_resets_the_count_of_failures() -> None:
    known = AddressFailures(clock := Clock())
    for _ in range(9):
        known.failed(ADDRESS, "it is down")
    known.opened(ADDRESS)
    assert not known.recent_failure(ADDRESS)
    known.failed(ADDRESS, "it is down again")
    assert known.recent_failure(ADDRESS) == "it is down again"
    clock.now += FIRST_PAUSE * (1 + JITTER)
    assert not known.recent_failure(ADDRESS)


def test_a_lost_connection_may_be_opened_again_at_once_but_others_are_preferred() -> None:
    known = AddressFailures(Clock())
    known.lost(ADDRESS, "it hung up")
    assert known.has_failed_recently(ADDRESS)
    assert not known.recent_failure(ADDRESS)


def test_a_connection_that_was_refused_is_not_tried_again_before_its_time() -> None:
    known = AddressFailures(clock := Clock())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with Connection("127.0.0.1", port, address_failures=known) as connection:
        with pytest.raises(ConnectionFailed, match="nobody listens on"):
            connection.send(MetadataRequest())
        with ScriptedBroker(lambda request, version: None, port=port):
            with pytest.raises(ConnectionFailed, match="nobody listens on"):
                connection.send(MetadataRequest())
            clock.now += FIRST_PAUSE * (1 + JITTER)
            assert connection.send(MetadataRequest()).controller_id == 7
