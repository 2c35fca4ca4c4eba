"""A Java program that serves HTTP: a process with a log file, and its REST interface."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hmb.bench import peers
from hmb.bench.peers.broker_process import spawn, terminate
from tests.conformance.groups.kinds import fetched, program
from tests.waiting import until

START_SECONDS = 150.0
WARNINGS_TO_LOG = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


def connect_jars() -> Path:
    """Return the folder with the jars of Kafka Connect 4.3.0 and MirrorMaker 2.

    Raises PeerUnavailable if the folder or Java is missing.
    """
    program("java")
    return fetched("connect")


class Service:
    """A Java program in a process of its own. Its settings name the address on which it listens: 127.0.0.1 and `port`.

    `with Service(log) as service:` creates the object, but does not start the program. The end of the block kills it.
    """

    def __init__(self, log: Path) -> None:
        self.log = log
        (self.port,) = peers.free_ports(1)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str]) -> None:
        """Start the process, and do not wait until it is ready."""
        self.process = spawn(list(command), self.log)

    def await_answer(self, path: str, port: int | None = None) -> None:
        """Wait until a GET request for `path` succeeds."""

        def answers() -> bool:
            assert self.process is not None and self.process.poll() is None, f"the program ended: {self.log_tail()}"
            try:
                self.call("GET", path, port=port)
            except OSError:
                return False
            return True

        until(answers, f"an answer of {path}", seconds=START_SECONDS, pause=0.1)

    def call(self, method: str, path: str, body: Any = None, port: int | None = None) -> Any:
        """Send an HTTP request with a JSON body. Return the decoded JSON of the response, or None if it is empty."""
        url = f"http://{peers.HOST}:{port or self.port}{path}"
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, data=data, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as response:
            content = response.read()
        return json.loads(content) if content else None

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process has ended."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """Send SIGTERM, and wait until the process has ended."""
        if self.process is not None:
            terminate(self.process)
            self.process = None

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
