"""Tests of fetches that wait for records, and of fetches by old clients. Each fetch ends, and respects `max_bytes`."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from hmb.broker.context import ConnectedClient
from hmb.broker.dispatch import Dispatcher
from hmb.records import Codec, Record, RecordBatch, encode_batch, read_records
from tests.broker.calls import fetch, outcome
from tests.broker.conftest import LISTENER, Asker
from tests.storage.conftest import batch


def test_a_fetch_of_an_old_client_keeps_to_max_bytes_after_conversion(ask: Asker) -> None:
    """A converted response for an old client has at most `max_bytes`.

    Before a bug was fixed, the limit counted compressed bytes. Some KB of zstd then became a response of hundreds of
    MB.
    """
    for name in ("a", "b"):
        log = ask.broker.topics.create(name, 1).partitions[0]
        for _ in range(20):
            log.append(RecordBatch.parse(encode_batch([Record(value=bytes(100_000))] * 5, codec=Codec.ZSTD)))
    request = fetch(topics=["a", "b"], max_bytes=1_000_000, partition_max_bytes=700_000)
    sizes = [len(topic.partitions[0].records) for topic in ask(request, 3).responses]
    assert 600_000 < sizes[0] <= 700_000
    assert 200_000 < sizes[1] <= 400_000
    first, *_, last = read_records(ask(request, 3).responses[0].partitions[0].records)
    assert (first.offset, last.offset) == (0, 5)


def test_a_client_that_leaves_ends_its_long_poll(ask: Asker) -> None:
    ask.broker.topics.create("t", 1)
    request = fetch()
    request.max_wait_ms = 2**31 - 1
    ask.dispatcher = Dispatcher(ask.broker, LISTENER, client=ConnectedClient(is_gone=lambda: True))
    assert outcome(ask(request, 12)) == 0


def test_no_fetch_waits_longer_than_a_connection_may_be_idle(make_asker: Callable[..., Asker]) -> None:
    ask = make_asker(connections_max_idle_ms="20")
    ask.broker.topics.create("t", 1)
    request = fetch()
    request.max_wait_ms = 2**31 - 1
    assert outcome(ask(request, 12)) == 0


def test_a_long_poll_finds_a_topic_that_was_created_again(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch waits for records, and its topic is deleted and created again.

    The waiting fetch looks up the topic every LOG_CHECK_INTERVAL seconds, so it finds the new log.
    """
    monkeypatch.setattr("hmb.broker.long_poll.LOG_CHECK_INTERVAL", 0.01)
    old = ask.broker.topics.create("t", 1)
    looks = itertools.count()

    def make_anew() -> bool:
        if next(looks) == 1:
            ask.broker.topics.delete([old])
            ask.broker.topics.create("t", 1).partitions[0].append(batch(1))
        return False

    ask.dispatcher = Dispatcher(ask.broker, LISTENER, client=ConnectedClient(is_gone=make_anew))
    request = fetch()
    request.max_wait_ms = 60_000
    assert len(ask(request, 12).responses[0].partitions[0].records) == batch(1).size
