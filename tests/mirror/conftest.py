"""Two brokers, and a function that makes a mirror from the first one to the second one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hmb
from hmb.mirror.names import Aliases, TopicChoice
from hmb.mirror.session import Mirror, MirrorSettings

QUICK = {"log.flush.acks.all": "false", "group.initial.rebalance.delay.ms": "0"}
EVERYTHING = re.compile(".*")

MakeMirror = Callable[..., Mirror]


@pytest.fixture
def source() -> Iterator[hmb.Broker]:
    with hmb.Broker(config=QUICK) as broker:
        yield broker


@pytest.fixture
def target() -> Iterator[hmb.Broker]:
    with hmb.Broker(config=QUICK) as broker:
        yield broker


@pytest.fixture
def said() -> list[str]:
    """The lines that the mirrors of a test have printed."""
    return []


@pytest.fixture
def mirror(source: hmb.Broker, target: hmb.Broker, said: list[str]) -> MakeMirror:
    """Return a function that makes a mirror. By default, the mirror copies all topics and groups once."""

    def make(
        topics: str = ".*",
        *,
        aliases: Aliases | None = None,
        observe: Callable[[], None] = lambda: None,
        **settings: Any,
    ) -> Mirror:
        choice = TopicChoice(re.compile(topics), aliases=aliases)
        chosen = MirrorSettings(choice, EVERYTHING, **({"is_once": True} | settings))
        ends = [broker.bootstrap_servers for broker in (source, target)]
        return Mirror(lambda: hmb.Admin(ends[0]), lambda: hmb.Admin(ends[1]), chosen, said.append, observe)

    return make


def contents(broker: hmb.Broker, topic: str) -> list[tuple[Any, ...]]:
    """Return the committed records of a topic, without their offsets, in the order of their partitions and offsets."""
    consumer = hmb.Consumer(broker.bootstrap_servers, topic, until="end", isolation_level="read_committed")
    records = sorted(consumer, key=lambda it: (it.partition, it.offset))
    return [(it.partition, it.timestamp, it.key, it.value, it.headers) for it in records]
