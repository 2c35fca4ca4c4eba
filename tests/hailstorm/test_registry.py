"""Tests of registries: elections, notifications about changed nodes, and the removal of nodes when a session ends.

Each test with the fixture `registries` runs with every kind of registry.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from hmb.hailstorm.registry import LocalRegistry, Registry, RegistryServer, RemoteRegistry, SessionExpiredError
from hmb.hailstorm.registry.server import MAX_OUTGOING
from hmb.hailstorm.registry.zookeeper import ZooKeeperRegistry
from hmb.hailstorm.wire import FrameSocket
from tests.waiting import until

SESSION_TIMEOUT = 0.6  # seconds


@pytest.fixture(params=["local", "remote", pytest.param("zookeeper", marks=pytest.mark.external)])
def registries(request: pytest.FixtureRequest) -> Iterator[Callable[[], Registry]]:
    """Return a function that connects to the registry. Each new connection stands for another process."""
    local = LocalRegistry()
    with contextlib.ExitStack() as stack:
        stack.callback(local.close)
        if request.param == "zookeeper":
            hosts = request.getfixturevalue("zookeeper")

            def join_zookeeper() -> Registry:
                registry = ZooKeeperRegistry(hosts, request.node.name.partition("[")[0])
                stack.callback(registry.close)
                return registry

            yield join_zookeeper
            return
        if request.param == "local":
            yield lambda: local
            return
        server = RegistryServer(local, session_timeout=SESSION_TIMEOUT)
        stack.callback(server.close)

        def connect() -> Registry:
            registry = RemoteRegistry(server.address)
            stack.callback(registry.close)
            return registry

        yield connect


def test_a_node_disappears_with_its_session(registries: Callable[[], Registry]) -> None:
    seen: list[tuple[str, bytes | None]] = []
    watcher, member = registries().join("watcher"), registries().join("member")
    watcher.watch("living/", lambda path, value: seen.append((path, value)))
    assert member.create("living/count-0", b"1")
    member.write("living/count-0", b"2")
    until(lambda: ("living/count-0", b"2") in seen, "the newest value; a watch may miss the one before")
    member.close()
    until(lambda: seen[-1] == ("living/count-0", None))
    assert not member.is_alive


def test_a_watch_begins_with_the_nodes_that_exist(registries: Callable[[], Registry]) -> None:
    member, watcher = registries().join("member"), registries().join("watcher")
    member.create("master", b"flowing")
    member.create("living/count-0", b"1")
    seen: list[tuple[str, bytes | None]] = []
    watcher.watch("living/", lambda path, value: seen.append((path, value)))
    until(lambda: seen)
    assert seen == [("living/count-0", b"1")]


def test_only_one_session_gets_a_node(registries: Callable[[], Registry]) -> None:
    """In an election, the second negotiator waits until the node of the first negotiator has disappeared."""
    first, second = registries().join("first"), registries().join("second")
    assert first.create("master", b"first")
    assert not second.create("master", b"second")
    first.close()
    until(lambda: second.create("master", b"second"))


def test_a_session_that_has_ended_writes_nothing(registries: Callable[[], Registry]) -> None:
    first, second = registries().join("first"), registries().join("second")
    first.create("master", b"first")
    first.close()
    with pytest.raises(SessionExpiredError):
        first.write("master", b"late")
    with pytest.raises(SessionExpiredError):
        first.create("living/count-0", b"late")
    until(lambda: second.create("master", b"second"))


def test_a_node_of_another_session_cannot_be_written(registries: Callable[[], Registry]) -> None:
    first, second = registries().join("first"), registries().join("second")
    first.create("master", b"first")
    with pytest.raises(SessionExpiredError, match="does not belong to this session"):
        second.write("master", b"second")


MEMBER = """
import sys, time
from hmb.hailstorm.registry import RemoteRegistry
session = RemoteRegistry(("127.0.0.1", int(sys.argv[1]))).join("member")
session.create("living/count-0", b"1")
print("ready", flush=True)
time.sleep(100)
"""


@pytest.fixture
def member() -> Iterator[tuple[RegistryServer, subprocess.Popen[str], list[float]]]:
    """Yield a server, a process that owns the node `living/count-0`, and the times at which the node disappeared."""
    local = LocalRegistry()
    server = RegistryServer(local, session_timeout=SESSION_TIMEOUT)
    gone: list[float] = []
    local.join("watcher").watch("living/", lambda path, value: gone.append(time.monotonic()) if value is None else None)
    process = subprocess.Popen(
        [sys.executable, "-c", MEMBER, str(server.address[1])], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    yield server, process, gone
    process.kill()
    process.wait(10)
    process.stdout.close()
    server.close()


def test_the_death_of_a_process_is_noticed_within_a_second(
    member: tuple[RegistryServer, subprocess.Popen[str], list[float]],
) -> None:
    _, process, gone = member
    killed = time.monotonic()
    process.kill()
    until(lambda: gone, seconds=30)
    assert gone[0] - killed < 1


def test_a_process_that_hangs_loses_its_session(
    member: tuple[RegistryServer, subprocess.Popen[str], list[float]],
) -> None:
    _, process, gone = member
    time.sleep(2 * SESSION_TIMEOUT)  # Heartbeats keep the session alive.
    assert gone == []
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: gone, seconds=30)
    os.kill(process.pid, signal.SIGCONT)


def test_a_member_notices_that_the_registry_is_gone() -> None:
    server = RegistryServer(LocalRegistry(), session_timeout=SESSION_TIMEOUT)
    session = RemoteRegistry(server.address).join("member")
    session.create("living/count-0", b"1")
    server.close()
    until(lambda: not session.is_alive)
    with pytest.raises(SessionExpiredError):
        session.write("living/count-0", b"2")


def test_a_client_that_reads_nothing_loses_its_session_when_its_queue_is_full(caplog: pytest.LogCaptureFixture) -> None:
    """A client that does not read loses its session.

    The server keeps at most 10,000 messages for one client. The other sessions continue.
    """
    local = LocalRegistry()
    server = RegistryServer(local, session_timeout=60)
    client = FrameSocket.connect(server.address, 10)
    for request in (["join", "deaf"], ["create", "living/deaf-0", b"1"], ["watch", "living/busy-0"]):
        client.send(request)
    until(lambda: any(session.watches for session in local.sessions))
    busy = local.join("busy")
    busy.create("living/busy-0", b"")
    written = 0
    while "living/deaf-0" in local.nodes and written < 5 * MAX_OUTGOING:
        busy.write("living/busy-0", bytes(10_000))
        written += 1
    until(lambda: "living/deaf-0" not in local.nodes)
    assert written > MAX_OUTGOING == 10_000
    assert "the session of deaf has expired because the client does not read the answers" in caplog.text
    busy.write("living/busy-0", b"still alive")
    client.close()
    server.close()


def test_a_registry_that_does_not_exist_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = closed.getsockname()[:2]
    with pytest.raises(OSError):
        RemoteRegistry(address).join("member")


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x01N",
        b"\x00\x00\x00\x03l\x01v",
        b"",
    ],
)
def test_garbage_closes_only_its_own_connection(garbage: bytes) -> None:
    server = RegistryServer(LocalRegistry(), session_timeout=SESSION_TIMEOUT)
    session = RemoteRegistry(server.address).join("member")
    with socket.create_connection(server.address) as client:
        client.sendall(garbage)
        client.settimeout(10)
        if garbage:
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(100) == b""
    assert session.create("living/count-0", b"1")
    server.close()
