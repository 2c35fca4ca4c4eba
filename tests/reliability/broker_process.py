"""Runs a broker in its own process, and observes its log, its memory and its response times."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from hmb.protocol.connection import ClientConnection
from hmb.protocol.framing import read_frame
from hmb.protocol.schema import Request, Response
from tests.reliability.stopwatch import Stopwatch

START_SECONDS = 30.0
ANSWER_SECONDS = 60.0
MIB = 1024 * 1024


class BrokerProcess:
    """An `hmb broker` process on a free port, with its data below `directory`.

    `settings` override the default settings.
    """

    def __init__(self, directory: Path, *settings: str) -> None:
        self._log_path = directory / "broker.log"
        command = [str(Path(sys.executable).with_name("hmb")), "broker", "--port", "0"]
        command += ["--data-dir", str(directory / "data"), *(part for each in settings for part in ("-X", each))]
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        self.address = self._wait_until_it_listens()

    def _wait_until_it_listens(self) -> tuple[str, int]:
        deadline = time.monotonic() + START_SECONDS
        while (found := re.search(r"listening on ([\d.]+):(\d+)", self.log)) is None:
            assert self.is_alive and time.monotonic() < deadline, f"the broker does not start: {self.log}"
            time.sleep(0.05)
        return found[1], int(found[2])

    @property
    def log(self) -> str:
        """Return the broker's log."""
        return self._log_path.read_text(encoding="utf-8", errors="replace")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def peak_memory(self) -> int:
        """Return the largest resident memory of the process so far, in bytes."""
        return self._status("VmHWM")

    @property
    def memory(self) -> int:
        """Return the current resident memory of the process, in bytes."""
        return self._status("VmRSS")

    def _status(self, name: str) -> int:
        text = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"{name}:\s+(\d+) kB", text)
        assert found is not None
        return int(found[1]) * 1024

    def connect(self) -> socket.socket:
        """Return a new connection. A read from it fails after ANSWER_SECONDS."""
        connection = socket.create_connection(self.address, timeout=ANSWER_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def ask(connection: socket.socket, request: Request, version: int) -> Response:
    """Send one request, and return the response to it."""
    client = ClientConnection("probe")
    connection.sendall(b"".join(part for part in client.request(request, version) if isinstance(part, bytes)))
    frame = read_frame(connection.makefile("rb"), 1 << 30)
    assert frame is not None, "the broker has closed the connection"
    return client.receive(frame)[1]


class Probe:
    """A client that runs in its own thread, and sends valid requests to a broker.

    For each request, the client measures the time from the connection attempt to the response.
    """

    def __init__(self, broker: BrokerProcess, request: Request, version: int, pause: float = 0.05) -> None:
        self._broker, self._request, self._version, self._pause = broker, request, version, pause
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.times: list[float] = []  # the wall-clock time of each request, in seconds
        self.own_times: list[float] = []  # the same times without the waits for a processor (see stopwatch.py)

    def _run(self) -> None:
        while not self._stopped.wait(self._pause):
            stopwatch = Stopwatch(self._broker.pid)
            with self._broker.connect() as connection:
                ask(connection, self._request, self._version)
            self.times.append(stopwatch.wall_seconds())
            self.own_times.append(stopwatch.own_seconds())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()
