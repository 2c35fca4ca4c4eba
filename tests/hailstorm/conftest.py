"""A broker for all tests of Hailstorm, and topics for each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import pytest

import hmb
from hmb.client import NewTopic

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    with hmb.Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def make_topic(servers: str) -> Callable[..., str]:
    """Return a function that makes a topic and fills its partitions: `make_topic([[b"sun"], [b"fog", b"sun"]])`."""

    def make(logs: Sequence[Sequence[bytes]]) -> str:
        name = f"hailstorm-{next(NUMBERS)}"
        with hmb.Admin(servers) as admin:
            admin.create_topics([NewTopic(name, len(logs))])
        produce(servers, name, logs)
        return name

    return make


def produce(servers: str, topic: str, logs: Sequence[Sequence[bytes]]) -> None:
    with hmb.Producer(servers) as producer:
        for partition, values in enumerate(logs):
            if values:
                producer.send_many(topic, list(values), partition=partition)
        producer.flush()
