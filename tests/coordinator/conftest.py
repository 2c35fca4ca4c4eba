"""Fixtures: a journal and its topic in a temporary directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from hmb.coordinator.journal.writing import Journal
from hmb.protocol.topics import OFFSETS_TOPIC
from hmb.storage.config import LogConfig
from hmb.storage.log import Log


class Topic:
    """The topic `__consumer_offsets` with a few partitions."""

    name = OFFSETS_TOPIC

    def __init__(self, directory: Path, partitions: int) -> None:
        self.directory = directory
        self.config = LogConfig(cleanup_policy="compact")
        self.partitions = partitions
        self.opened: dict[int, Log] = {}

    def logs(self) -> Mapping[int, Log]:
        return self.opened

    def make(self) -> None:
        self.opened = {number: self.open(number) for number in range(self.partitions)}

    def open(self, number: int) -> Log:
        path = self.directory / f"__consumer_offsets-{number}"
        path.mkdir(exist_ok=True)
        return Log(path, self.config, clean=True)

    def reopen(self) -> None:
        """Close the logs and open them again, as a restart of the broker does."""
        for log in self.opened.values():
            log.close()
        self.make()


MakeJournal = Callable[..., Journal]


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    made = Topic(tmp_path, 1)
    made.make()
    return made


@pytest.fixture
def journal(topic: Topic) -> Iterator[Journal]:
    """Return a journal whose topic is new and has one partition, so that the journal has nothing to load."""
    opened = topic.opened
    topic.opened = {}
    journal = Journal(topic, must_sync=lambda: True, clock=lambda: 1_000)
    topic.opened = opened
    yield journal
