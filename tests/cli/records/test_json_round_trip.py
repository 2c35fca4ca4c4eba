"""Tests of `hmb consume --json T | hmb produce --json U`: the copy of each topic equals the original."""

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hmb
from hmb.client import Consumer
from hmb.protocol.enums import INT64_MAX
from hmb.records.record import NO_TIMESTAMP
from tests.cli.conftest import Hmb

NUMBERS = count()
PARTITIONS = 2


class Sent(NamedTuple):
    """A record without its offset."""

    key: bytes | None
    value: bytes | None
    partition: int
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


data = st.none() | st.just(b"") | st.binary(max_size=30) | st.text(max_size=12).map(str.encode)
names = st.sampled_from(["", "same", "\u2028", "\x00"]) | st.text(max_size=8)
timestamps = st.sampled_from([NO_TIMESTAMP, 0, 1, INT64_MAX - 1]) | st.integers(0, 2**45)
records = st.builds(
    Sent,
    data,
    data,
    st.integers(0, PARTITIONS - 1),
    st.lists(st.tuples(names, data), max_size=4).map(tuple),
    timestamps,
)


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    settings = {"num.partitions": str(PARTITIONS), "log.flush.acks.all": "false", "log.retention.ms": "-1"}
    settings["log.message.timestamp.after.max.ms"] = str(INT64_MAX)
    with hmb.Broker(config=settings) as broker:
        yield broker.bootstrap_servers


def read(servers: str, topic: str) -> list[list[Sent]]:
    """Return the records of each partition, in order."""
    found: list[list[Sent]] = [[] for _ in range(PARTITIONS)]
    for it in Consumer(servers, topic, until="end"):
        found[it.partition].append(Sent(it.key, it.value, it.partition, it.headers, it.timestamp))
    return found


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(records, min_size=1, max_size=40))
def test_a_copy_equals_the_original(run: Hmb, broker: str, sent: list[Sent]) -> None:
    topic = f"original{next(NUMBERS)}"
    with hmb.Producer(broker) as producer:
        for it in sent:
            producer.send(topic, it.value, it.key, it.partition, it.headers, it.timestamp)
    original = read(broker, topic)
    assert original == [[it for it in sent if it.partition == number] for number in range(PARTITIONS)]

    printed = run("consume", topic, "-e", "--json", "-b", broker).stdout_bytes
    assert printed.count(b"\n") == len(sent)
    run("produce", f"{topic}-copy", "--json", "-b", broker, stdin=printed)
    assert read(broker, f"{topic}-copy") == original


def test_a_large_copy(run: Hmb, broker: str) -> None:
    """A copy is complete even if the input is too large to be read at once.

    Each read can end inside a line, and the records are sent in several chunks.
    """
    with hmb.Producer(broker) as producer:
        for number in range(5000):
            value = b"\xff" * (number % 97) if number % 3 else None
            producer.send("much", value, b"%d" % number, number % PARTITIONS, [("n", b"%d" % number)], number)
    printed = run("consume", "much", "-e", "--json", "-b", broker).stdout_bytes
    run("produce", "much-copy", "--json", "-b", broker, stdin=printed)
    assert read(broker, "much-copy") == read(broker, "much")
