"""A broker that runs in a process of its own, on a free port of 127.0.0.1.

In a fair comparison, each broker is a real process, and clients connect to the broker through a real socket. Benchmarks
and conformance tests therefore use a `Peer`: a broker process with its own directory and log file. For example:
    with Hmb() as hmb, Kafka43() as kafka:
        compare(hmb.bootstrap, kafka.bootstrap)

The method `start` starts a broker. It then sends Metadata requests until a response lists the broker.

A successful connection does not show that a broker is ready. Kafka accepts connections before it becomes a
member of the cluster.

The method `stop` sends SIGTERM to the broker's process. If the process still runs after `STOP_SECONDS`, `stop` sends
SIGKILL. The method `kill` sends SIGKILL immediately.

A `Peer` creates a temporary directory for its broker, and deletes it at the end. If the caller names a directory, the
`Peer` uses that directory and does not delete it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from hmb.client import Connection, ConnectionFailed
from hmb.protocol.messages.metadata import MetadataRequest

from ..errors import PeerFailed

HOST = "127.0.0.1"
START_SECONDS = 60.0
STOP_SECONDS = 30.0
COMPARABLE_SETTINGS = {  # All peers have these values, which differ from the defaults of HMB and Kafka.
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.delete.delay.ms": "1000",  # After the deletion of a topic, its disk space is soon free.
}


class Peer(ABC):
    """A broker process. In a subclass, `prepare` writes the broker's files, and `command` returns its command line."""

    name: str

    def __init__(
        self, directory: Path | None = None, *, port: int | None = None, config: Mapping[str, str] | None = None
    ) -> None:
        self.temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="hmb-peer-")) if directory is None else directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = free_ports(1)[0] if port is None else port
        self.config = dict(config or {})
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def data_dir(self) -> Path:
        """The broker's data directory, which contains one directory for each partition of a topic."""
        return self.directory / "data"

    @property
    def log_path(self) -> Path:
        """The file into which the process writes its standard output and its standard error."""
        return self.directory / "broker.log"

    @property
    def pid(self) -> int:
        """The id of the running process. Raises PeerFailed if no process runs."""
        if self.process is None:
            raise PeerFailed(f"{self.name} is not running")
        return self.process.pid

    @abstractmethod
    def prepare(self) -> None:
        """Create the files and start the other processes that the broker needs before its start."""

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command line that starts the broker."""

    def spawn(self) -> None:
        """Start the process without waiting for the broker.

        A benchmark can then measure how long the broker's start takes.
        """
        self.process = spawn(self.command(), self.log_path)

    def start(self) -> Self:
        """Start the broker and wait until it is ready. Raises PeerFailed if it does not become ready."""
        self.prepare()
        self.spawn()
        self.await_ready()
        return self

    def ready(self) -> bool:
        return bool(brokers_known(self.port))

    def await_ready(self) -> None:
        """Wait until the broker is ready. Raises PeerFailed after START_SECONDS, or if the process ends."""
        deadline = time.monotonic() + START_SECONDS
        while not self.ready():
            ended = self.process is None or self.process.poll() is not None
            if ended or time.monotonic() > deadline:
                self.stop()
                raise PeerFailed(f"{self.name} did not start; its log ends:\n{self.log_tail()}")
            time.sleep(0.02)

    def stop(self) -> int | None:
        """Send SIGTERM, and wait until the process has ended. Return its exit code, or None if no process was running.

        The exit code is -9 if the process still ran after STOP_SECONDS and was killed.
        """
        process, self.process = self.process, None
        return None if process is None else terminate(process)

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process has ended."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def log_tail(self, lines: int = 30) -> str:
        text = self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def remove(self) -> None:
        """Delete the broker's directory if it is a temporary one."""
        if self.temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            self.remove()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self.remove()


def free_ports(count: int) -> list[int]:
    """Return `count` different ports on which no process listens.

    The function keeps each port open until it has found all ports. Otherwise it could find the same port twice.
    """
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def brokers_known(port: int) -> int | None:
    """Send a Metadata request to `port`. Return the number of brokers in the response, or None if no response arrives.

    The request has version 0, because Kafka 0.8.2 supports no other version of Metadata.
    """
    try:
        with Connection(HOST, port, timeout=5) as connection:
            return len(connection.send(MetadataRequest(topics=[]), version=0).brokers)
    except ConnectionFailed:
        return None


def spawn(command: list[str], log_path: Path) -> subprocess.Popen[bytes]:
    """Start a process that Ctrl-C does not end. The benchmark must end the process itself.

    Ctrl-C ends only the programs in the foreground of the terminal. The new process runs in its own session
    (`start_new_session`), so it is not one of these programs.

    The function removes the variable PYTHONDONTWRITEBYTECODE from the environment of the process. With this
    variable, Python would not store the compiled modules of an HMB broker, and would compile them again at each
    start.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with log_path.open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )


def terminate(process: subprocess.Popen[bytes]) -> int:
    """End a process and return its exit code. Send SIGTERM first, and SIGKILL if it still runs after STOP_SECONDS."""
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def write_properties(path: Path, properties: Mapping[str, object]) -> None:
    """Write a Java properties file."""
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
