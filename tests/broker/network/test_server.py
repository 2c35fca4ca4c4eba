"""Tests of the network layer: real sockets, malformed requests, and the stop of a broker."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hmb.broker import BrokerServer
from hmb.broker.config.keys import ConfigError
from hmb.broker.context import Stop
from hmb.broker.housekeeping import Housekeeper
from hmb.broker.network.connection import has_disconnected
from hmb.broker.network.listeners import BindError
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.schema import Request
from hmb.records import read_records
from hmb.storage.log import Log, LogAppendInfo
from hmb.storage.state.identity import DataDirectoryError
from tests.broker.calls import fetch, outcome, produce
from tests.broker.conftest import Wire, as_bytes
from tests.storage.conftest import batch

Connect = Callable[[], Wire]


def make_topic(wire: Wire, name: str = "t") -> None:
    wire.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)]), 9)


def test_produced_records_can_be_fetched(connect: Connect) -> None:
    wire = connect()
    make_topic(wire)
    sent = batch(1000, size=500)
    assert outcome(wire.ask(produce(sent), 9)) == 0
    answer = wire.ask(fetch(), 12)
    assert outcome(answer) == 0
    stored = answer.responses[0].partitions[0].records  # type: ignore[attr-defined]
    assert list(read_records(stored)) == list(read_records(sent.view))


def test_pipelined_requests_are_answered_in_order(connect: Connect) -> None:
    wire = connect()
    wire.send(b"".join(bytes.fromhex(f"0000000b 0012 0000 {number:08x} 0001 63") for number in range(50)))
    for number in range(50):
        answer = wire.frame()
        assert answer is not None and int.from_bytes(answer[:4], "big") == number


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",  # a negative length
        b"\x7f\xff\xff\xff" + b"x" * 100,  # a length of 2 GB
        b"\x00\x0f\x42\x41",  # one byte more than socket.request.max.bytes
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        bytes.fromhex("0000000a 0003 0009 00000001 ffff"),  # a request without a body
        bytes.fromhex("00000011 0003 0000 00000001 ffff 7fffffff 0000 00"),  # an array of 2^31 - 1 topics
        bytes.fromhex("0000000a 03e7 0000 00000001 ffff"),  # an unknown API key
        bytes.fromhex("0000000a 0000 0063 00000001 ffff"),  # an unknown version
    ],
)
def test_hostile_bytes_close_their_connection_and_no_other(connect: Connect, data: bytes) -> None:
    wire, other = connect(), connect()
    wire.send(data)
    assert wire.frame() is None
    assert other.ask(ApiVersionsRequest(), 0).error_code == 0  # type: ignore[attr-defined]


def test_a_frame_that_the_client_cuts_off_is_not_an_error(connect: Connect) -> None:
    wire, other = connect(), connect()
    wire.send(b"\0\0\0\x40half")
    wire.socket.shutdown(socket.SHUT_WR)
    assert wire.frame() is None
    assert other.ask(ApiVersionsRequest(), 0).error_code == 0  # type: ignore[attr-defined]


def test_an_internal_error_closes_one_connection_and_is_logged(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wire, other = connect(), connect()
    make_topic(other)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("hmb.storage.log.Log.read", broken)
    wire.send(b"".join(map(as_bytes, _framed(fetch(), 12))))
    assert wire.frame() is None
    assert "FetchRequest v12 of client 'test' failed" in caplog.text and "planted" in caplog.text
    assert other.ask(ApiVersionsRequest(), 0).error_code == 0  # type: ignore[attr-defined]


def _framed(request: Request, version: int) -> list[object]:
    from hmb.protocol.connection import ClientConnection

    return list(ClientConnection("test").request(request, version))


def waiting_fetch(offset: int, min_bytes: int = 1) -> FetchRequest:
    request = fetch(offset)
    request.max_wait_ms, request.min_bytes = 60_000, min_bytes
    return request


def test_a_long_poll_is_answered_by_the_next_produce(connect: Connect) -> None:
    consumer, producer = connect(), connect()
    make_topic(producer)
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(consumer.ask(waiting_fetch(0, 2 * batch(1).size), 12)))
    thread.start()
    for _ in range(2):  # One batch is smaller than `min_bytes`, so the fetch waits for the second one.
        producer.ask(produce(batch(1)), 9)
    thread.join(30)
    records = answers[0].responses[0].partitions[0].records  # type: ignore[attr-defined]
    assert len(list(read_records(records))) == 2


def test_a_long_poll_without_news_ends_after_max_wait(connect: Connect) -> None:
    wire = connect()
    make_topic(wire)
    request = waiting_fetch(0)
    request.max_wait_ms = 50
    answer = wire.ask(request, 12)
    assert len(answer.responses[0].partitions[0].records) == 0  # type: ignore[attr-defined]


def test_stopping_answers_long_polls_and_marks_a_clean_end(tmp_path: Path) -> None:
    broker = BrokerServer(data_dir=tmp_path).start()
    host, port = broker.bootstrap_servers.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        wire = Wire(client)
        make_topic(wire)
        client.sendall(b"".join(map(as_bytes, _framed(waiting_fetch(0), 12))))
        while not broker._stop.watchers._watchers:  # Wait until the broker has started the long poll.
            time.sleep(0.01)
        broker.stop()
        assert wire.frame() is not None  # the response to the long poll
        assert wire.frame() is None
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    with BrokerServer(data_dir=tmp_path):
        assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_connections_above_the_limit_are_refused() -> None:
    with BrokerServer(config={"max.connections": "2"}) as broker:
        host, port = broker.bootstrap_servers.split(":")
        wires = []
        for _ in range(2):
            wires.append(Wire(socket.create_connection((host, int(port)), timeout=30)))
            wires[-1].ask(ApiVersionsRequest(), 0)
        refused = Wire(socket.create_connection((host, int(port)), timeout=30))
        assert refused.frame() is None
        assert wires[0].ask(ApiVersionsRequest(), 0).error_code == 0  # type: ignore[attr-defined]
        for wire in (*wires, refused):
            wire.socket.close()


def test_a_client_without_a_thread_is_lost_and_the_next_one_is_served(
    broker: BrokerServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If the broker cannot start a thread for a connection, it closes this connection and accepts the next one.

    Before a bug was fixed, the broker accepted no more connections after such a failure.
    """
    start = threading.Thread.start

    def fail_once(thread: threading.Thread) -> None:
        monkeypatch.setattr(threading.Thread, "start", start)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail_once)
    assert connect().frame() is None
    assert connect().ask(ApiVersionsRequest(), 0).error_code == 0  # type: ignore[attr-defined]
    assert "cannot serve 127.0.0.1" in caplog.text and "can't start new thread" in caplog.text
    server = broker._server
    assert server is not None
    with server._lock:  # The acceptor holds this lock until the connection is in the table.
        assert len(server._connections) == 1


def test_requests_received_before_the_stop_are_not_processed_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the broker has stopped a connection, it processes no further request of this connection.

    Before a bug was fixed, the broker closed its logs, and then still processed requests that it had already read.
    """
    broker = BrokerServer(data_dir=tmp_path).start()
    host, port = broker.bootstrap_servers.split(":")
    appended: list[int] = []
    append = Log.append

    def stop_meanwhile(log: Log, records: memoryview) -> LogAppendInfo:
        appended.append(len(records))
        server = broker._server
        assert server is not None
        (connection,) = server._connections
        connection.stop()
        return append(log, records)

    with socket.create_connection((host, int(port)), timeout=30) as client:
        wire = Wire(client)
        make_topic(wire)
        monkeypatch.setattr(Log, "append", stop_meanwhile)
        wire.send(b"".join(map(as_bytes, _framed(produce(batch(1)), 9))) * 5)
        assert wire.frame() is not None
        assert wire.frame() is None
    broker.stop()
    assert len(appended) == 1


def test_the_broker_notices_a_closed_connection_after_unread_requests() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not has_disconnected(ours)
        theirs.send(b"a request")
        assert not has_disconnected(ours)
        theirs.close()
        assert has_disconnected(ours)


def test_twenty_clients_that_left_a_long_poll_hold_no_connections(
    connect: Connect, broker: BrokerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a client disconnects during a long poll, the broker also closes the connection.

    Before a bug was fixed, the broker kept the connection until `max_wait_ms` was over, which can take days.
    """
    monkeypatch.setattr("hmb.broker.long_poll.LOG_CHECK_INTERVAL", 0.05)
    first = connect()
    make_topic(first)
    request = waiting_fetch(0)
    request.max_wait_ms = 2**31 - 1
    for _ in range(20):
        wire = connect()
        wire.send(b"".join(map(as_bytes, _framed(request, 12))))
        wire.socket.shutdown(socket.SHUT_RDWR)
    assert broker._server is not None
    deadline = time.monotonic() + 30
    while len(broker._server._connections) > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(broker._server._connections) == 1


def test_a_reader_that_stays_silent_is_closed_after_the_idle_time() -> None:
    with BrokerServer(config={"connections.max.idle.ms": "50"}) as broker:
        host, port = broker.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port)), timeout=30) as client:
            assert Wire(client).frame() is None


def test_every_listener_advertises_its_own_address() -> None:
    listeners = "A://127.0.0.1:0,B://127.0.0.1:0"
    with BrokerServer(config={"listeners": listeners, "advertised.listeners": "B://outside.example:7000"}) as broker:
        inside, outside = broker.bootstrap_servers.split(",")
        assert outside == "outside.example:7000"
        server = broker._server
        assert server is not None
        for listener, advertised in zip(server.listeners, (inside, outside), strict=True):
            with socket.create_connection((listener.host, listener.port), timeout=30) as client:
                (node,) = Wire(client).ask(MetadataRequest(topics=[]), 9).brokers  # type: ignore[attr-defined]
                assert f"{node.host}:{node.port}" == advertised


def test_names_that_the_map_calls_plaintext_are_served() -> None:
    protocols = "A:PLAINTEXT,SSL:PLAINTEXT,SASL_SSL:SASL_SSL"
    config = {"listeners": "A://127.0.0.1:0,SSL://127.0.0.1:0", "listener.security.protocol.map": protocols}
    with BrokerServer(config=config) as broker:
        assert broker.bootstrap_servers.count(":") == 2


@pytest.mark.parametrize("name", ["log.dirs", "log.dir"])
def test_the_data_directory_may_come_from_the_config(tmp_path: Path, name: str) -> None:
    """The broker uses the data directory from its configuration.

    Before a bug was fixed, the broker ignored this setting, and stored the records in a temporary directory. When the
    broker stopped, it deleted this directory.
    """
    with BrokerServer(config={name: str(tmp_path / "data")}) as broker:
        assert broker.data_dir == tmp_path / "data"
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    with BrokerServer(data_dir=tmp_path / "other", config={name: str(tmp_path / "data")}) as broker:
        assert broker.data_dir == tmp_path / "other"


def test_a_broker_starts_once(tmp_path: Path) -> None:
    """A stopped BrokerServer cannot start again, because `Stop.requested` stays set and would end its new threads."""
    broker = BrokerServer(data_dir=tmp_path)
    with broker, pytest.raises(RuntimeError, match="cannot start again"):
        broker.start()
    with pytest.raises(RuntimeError, match="cannot start again"):
        broker.start()


def test_a_system_that_reports_no_limit_of_files_still_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS reports that the number of file descriptors has no limit, but refuses "no limit" as a new value.

    In this case, the broker sets the limit to a number.
    """
    limits: list[tuple[int, int]] = []

    def setrlimit(_: int, wanted: tuple[int, int]) -> None:
        limits.append(wanted)
        if wanted[0] == resource.RLIM_INFINITY:
            raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    with BrokerServer():
        assert limits[-1] == (10_240, resource.RLIM_INFINITY)


def test_a_housekeeper_that_does_not_end_does_not_keep_the_broker_from_stopping(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stop, begun, end = Stop(), threading.Event(), threading.Event()

    def task() -> None:
        begun.set()
        end.wait(30)

    housekeeper = Housekeeper(stop, [(lambda: 0.0, task)])
    housekeeper.start()
    begun.wait(30)
    stop.request()
    housekeeper.join(time.monotonic())
    assert "stops while a periodic task is still running" in caplog.text
    end.set()
    housekeeper.join(time.monotonic() + 30)


def test_an_interval_longer_than_any_thread_can_wait_never_ends() -> None:
    longest = str(2**63 - 1)
    with BrokerServer(config={"log.retention.check.interval.ms": longest, "log.cleaner.backoff.ms": longest}) as broker:
        assert all(housekeeper._thread.is_alive() for housekeeper in broker.housekeepers)


def test_an_occupied_port_is_reported_before_any_file_is_changed(broker: BrokerServer, tmp_path: Path) -> None:
    port = int(broker.bootstrap_servers.split(":")[1])
    with pytest.raises(BindError, match=f"127.0.0.1:{port}: Address already in use"):
        BrokerServer(data_dir=tmp_path / "data", port=port).start()
    assert not (tmp_path / "data").exists()


def test_a_data_directory_in_use_is_refused_and_left_alone(tmp_path: Path) -> None:
    with BrokerServer(data_dir=tmp_path):
        with pytest.raises(DataDirectoryError, match="in use by another broker"):
            BrokerServer(data_dir=tmp_path).start()
        assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_data_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        DataDirectoryError, match=r"cannot use the data directory .*/file: it is a file; choose another"
    ):
        BrokerServer(data_dir=tmp_path / "file").start()


@pytest.mark.parametrize(
    "config",
    [
        {"listeners": "127.0.0.1:9092"},
        {"listeners": "PLAINTEXT://127.0.0.1:99999"},
        {"listeners": ""},
        {"advertised.listeners": "OTHER://a:1"},
        {"num.partitions": "0"},
        {"num.partitions": "two"},
        {"auto.create.topics.enable": "yes"},
        {"log.message.timestamp.type": "Now"},
        {"log.segment.bytes": str(2**31)},
        {"log.index.size.max.bytes": str(2**31)},
        {"log.index.interval.bytes": str(2**31)},
        {"message.max.bytes": str(2**31)},
        {"log.cleaner.min.cleanable.ratio": "nan"},
        {"log.cleaner.min.cleanable.ratio": "1.5"},
        {"log.retention.ms": str(2**63)},
        {"ssl.keystore.type": "P12", "listeners": "SSL://127.0.0.1:0"},
        {"ssl.enabled.protocols": "TLSv1.1", "listeners": "SSL://127.0.0.1:0"},
        {"ssl.keystore.location": "/nowhere", "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"},
        {
            "sasl.enabled.mechanisms": "GSSAPI",
            "listeners": "A://127.0.0.1:0",
            "listener.security.protocol.map": "A:SASL_PLAINTEXT",
        },
        {"listener.security.protocol.map": "A:TELNET"},
        {"log.dirs": "one,two"},
    ],
)
def test_the_error_names_invalid_settings(config: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(config)).removeprefix("log.")):
        BrokerServer(config=config)
