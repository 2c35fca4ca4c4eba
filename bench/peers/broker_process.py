"""A broker as a process of its own, on a free port of 127.0.0.1.

A comparison is fair, and a conformance test is convincing, only if every broker is a real process that clients reach
through a real socket. A `Peer` is such a process with its directory and its log::

    with Hmb() as hmb, Kafka43() as kafka:
        compare(hmb.bootstrap, kafka.bootstrap)

Ready: `start` returns when the broker's Metadata response contains the broker. A port that accepts
connections is not enough, because Kafka opens its port before it becomes a member of its cluster.

Stop: `stop` sends SIGTERM, and SIGKILL to a process that still runs after `STOP_SECONDS`. `kill` sends SIGKILL at once.

Directory: a peer creates a temporary directory and removes it at the end. A directory that the caller names is kept.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
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
COMPARABLE_SETTINGS = {  # All peers have these settings, which differ from the defaults of HMB and Kafka.
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.delete.delay.ms": "1000",  # so that the space of a deleted topic becomes free soon
}


class Peer:
    """A broker process. A subclass fills its directory (`prepare`) and defines its command line (`command`)."""

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
        """The folder that contains the directories of the topic partitions."""
        return self.directory / "data"

    @property
    def log_path(self) -> Path:
        """The file that receives the standard output and the standard error of the process."""
        return self.directory / "broker.log"

    @property
    def pid(self) -> int:
        """The id of the running process. Raises PeerFailed if no process runs."""
        if self.process is None:
            raise PeerFailed(f"{self.name} is not running")
        return self.process.pid

    def prepare(self) -> None:
        """Create the files and start the helper processes that the broker needs before it starts."""

    def command(self) -> list[str]:
        raise NotImplementedError

    def spawn(self) -> None:
        """Start the process without waiting for it, so that a benchmark can measure the start."""
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
        """Send SIGTERM and wait for the end; return the exit code, or None if no process ran.

        The exit code is -9 if the process ignored SIGTERM for STOP_SECONDS.
        """
        process, self.process = self.process, None
        return None if process is None else terminate(process)

    def kill(self) -> None:
        """Send SIGKILL and wait for the end of the process."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def log_tail(self, lines: int = 30) -> str:
        text = self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def remove(self) -> None:
        """Remove the directory if it is a temporary one."""
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
    """Return different ports on which no process listens.

    The function keeps each port open until it has found all ports.
    """
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def brokers_known(port: int) -> int | None:
    """Return the number of brokers in the Metadata response of the broker on `port`; None if it does not answer.

    The request has version 0, because Kafka 0.8.2 supports no other version.
    """
    try:
        with Connection(HOST, port, timeout=5) as connection:
            return len(connection.send(MetadataRequest(topics=[]), version=0).brokers)
    except ConnectionFailed:
        return None


def spawn(command: list[str], log_path: Path) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, so that Ctrl-C reaches the benchmark, which stops its peers in order."""
    with log_path.open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )


def terminate(process: subprocess.Popen[bytes]) -> int:
    """Send SIGTERM, and SIGKILL after STOP_SECONDS; return the exit code."""
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def write_properties(path: Path, properties: Mapping[str, object]) -> None:
    """Write a Java properties file."""
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
