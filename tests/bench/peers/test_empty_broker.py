"""A test of the empty broker, which appends only the records of a connection's first Produce request.

The empty broker answers each later Produce request with a copy of the first response, so the offset never changes.
"""

from __future__ import annotations

import hmb
from hmb.bench.peers import topics
from hmb.bench.peers.empty_broker import EmptyBroker


def test_only_the_first_produce_request_is_appended_and_all_are_answered() -> None:
    with EmptyBroker() as broker:
        topics.create(broker.bootstrap, "t")
        with hmb.Producer(broker.bootstrap, acks=1) as producer:
            offsets = [producer.send("t", b"value").result(30).offset for _ in range(3)]
        assert offsets == [0, 0, 0]
        assert topics.end_offset(broker.bootstrap, "t") == 1
