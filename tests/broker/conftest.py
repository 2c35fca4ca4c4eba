"""Fixtures for a broker that receives requests from a test, with and without a network."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hmb.broker import BrokerServer
from hmb.broker.config.dynamic import DynamicConfig
from hmb.broker.config.groups.overrides import consumer_group_settings, share_group_settings, streams_group_settings
from hmb.broker.config.store import ConfigStore
from hmb.broker.context import BrokerContext, ConnectedClient, Stop
from hmb.broker.coordinators import ShareGroups
from hmb.broker.deferred import final
from hmb.broker.dispatch import Dispatcher
from hmb.broker.fetch_sessions import FetchSessions
from hmb.broker.network.listeners import Listener
from hmb.broker.old_clients import ConvertedRecords
from hmb.broker.share.sessions import ShareSessions
from hmb.broker.telemetry.instances import ClientTelemetry
from hmb.broker.topics.group_topics import GroupTopics
from hmb.broker.topics.journal import JournalTopic
from hmb.broker.topics.registry import Topics
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.producer_ids import ProducerIds
from hmb.coordinator.transactions.coordinator import TransactionCoordinator
from hmb.coordinator.transactions.markers import MarkerWriter
from hmb.protocol.connection import ClientConnection
from hmb.protocol.framing import read_frame
from hmb.protocol.schema import Request, Response
from hmb.protocol.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from hmb.storage.clock import SYSTEM_CLOCK
from hmb.storage.files.virtual import FileRegion
from hmb.storage.log_manager import LogManager
from tests.coordinator.settings import group_settings

LISTENER = Listener("PLAINTEXT", "127.0.0.1", 9092, "broker.example", 9093)


@dataclass
class Asker:
    """A client without a socket.

    The client passes the bytes of each request to the dispatcher, as a connection does.
    """

    broker: BrokerContext
    dispatcher: Dispatcher
    logs: LogManager
    closed: bool = False

    def __call__(self, request: Request, version: int) -> Any:
        answer = self.raw(b"".join(map(as_bytes, self.client.request(request, version)))[4:])
        return None if answer is None else self.client.receive(memoryview(answer))[1]

    def raw(self, frame: bytes) -> bytes | None:
        """Send the bytes of a request, and return the bytes of the response, or None if there is no response.

        The request and the response do not contain the four bytes with their size.
        """
        parts = final(self.dispatcher.begin(memoryview(frame)))
        return b"".join(map(as_bytes, parts))[4:] if parts else None

    def close(self) -> None:
        """Close the coordinators and the logs, as the broker does when it stops."""
        if not self.closed:
            self.broker.groups.stop(time.monotonic() + 5)
            self.broker.transactions.stop(time.monotonic() + 5)
            self.broker.share_groups.stop(time.monotonic() + 5)
            self.logs.close()
        self.closed = True

    def __post_init__(self) -> None:
        self.client = ClientConnection("test")


def as_bytes(part: object) -> bytes:
    if isinstance(part, ConvertedRecords):
        return b"".join(part.pieces())
    return part.read() if isinstance(part, FileRegion) else bytes(part)  # type: ignore[call-overload]


def open_asker(directory: Path, properties: Mapping[str, str], *, sync: bool = False) -> Asker:
    """Return an `Asker` for a broker without a network.

    With `sync`, coordinators sync their logs before they respond.
    """
    logs = LogManager(directory)
    configs = DynamicConfig(properties, ConfigStore(logs.directory, logs.manifest))
    config = configs.current
    topics = Topics(logs, config)
    configs.listen(lambda config: topics.set_default(config.log))
    producer_ids = ProducerIds(directory / "ids", logs.manifest, logs.highest_producer_id())
    groups = GroupCoordinator(
        Journal(JournalTopic(topics, config, OFFSETS_TOPIC), must_sync=lambda: sync),
        group_settings(initial_delay=0),
        GroupTopics(topics),
        lambda group_id: replace(consumer_group_settings(configs, group_id), assignment_interval=0),
        partial(share_group_settings, configs),
        partial(streams_group_settings, configs),
    )
    transactions = TransactionCoordinator(
        Journal(JournalTopic(topics, config, TRANSACTIONS_TOPIC), must_sync=lambda: sync),
        producer_ids,
        MarkerWriter(topics.log_of, topics.logs, groups, lambda: sync),
        lambda: configs.current.transaction_max_timeout,
    )
    share = ShareGroups(topics, configs, groups, SYSTEM_CLOCK)
    context = BrokerContext(
        configs=configs,
        cluster_id=logs.cluster_id,
        topics=topics,
        producer_ids=producer_ids,
        fetch_sessions=FetchSessions(config.fetch_session_slots, config.fetch_session_eviction),
        groups=groups,
        transactions=transactions,
        share_groups=share,
        share_sessions=ShareSessions(config.share.max_sessions),
        share_settings=partial(share_group_settings, configs),
        stop=Stop(),
        telemetry=ClientTelemetry(dict),
    )
    groups.start()
    transactions.start()
    share.start()
    return Asker(context, Dispatcher(context, LISTENER, client=ConnectedClient("192.0.2.1")), logs)


@pytest.fixture
def make_asker(tmp_path: Path) -> Iterator[Callable[..., Asker]]:
    opened: list[Asker] = []

    def make(**properties: str) -> Asker:
        given = {name.replace("_", "."): value for name, value in properties.items()}
        opened.append(open_asker(tmp_path / "data", given))
        return opened[-1]

    yield make
    for asker in opened:
        asker.close()


@pytest.fixture
def ask(make_asker: Callable[..., Asker]) -> Asker:
    return make_asker()


@dataclass
class Wire:
    """A client's connection to a broker. The test itself sends and receives the bytes."""

    socket: socket.socket

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def frame(self) -> bytes | None:
        """Return the bytes of the next response, or None if the broker has closed the connection."""
        frame = read_frame(self._stream, 1 << 26)
        return None if frame is None else bytes(frame)

    def __post_init__(self) -> None:
        self._stream = self.socket.makefile("rb")

    def ask(self, request: Request, version: int) -> Response:
        client = ClientConnection("test")
        self.send(b"".join(map(as_bytes, client.request(request, version))))
        frame = self.frame()
        assert frame is not None, "connection closed"
        return client.receive(memoryview(frame))[1]


@pytest.fixture
def broker() -> Iterator[BrokerServer]:
    with BrokerServer(config={"log.flush.acks.all": "false", "socket.request.max.bytes": "1000000"}) as broker:
        yield broker


@pytest.fixture
def connect(broker: BrokerServer) -> Iterator[Callable[[], Wire]]:
    wires: list[Wire] = []

    def connect() -> Wire:
        host, port = broker.bootstrap_servers.split(":")
        wire = Wire(socket.create_connection((host, int(port)), timeout=30))
        wires.append(wire)
        return wire

    yield connect
    for wire in wires:
        wire.socket.close()
