"""Sessions with a registry in another process.

Each session has its own connection and two threads. One thread receives messages from the registry: answers to
requests, and changed values. The other thread sends heartbeats.

A session expires when its connection breaks. The registry server closes the connection if the time since the last
message from the client exceeds the session timeout. When a session expires, the server removes the nodes (entries)
that the session has created.

A session belongs to a processor or a negotiator. When the connection is closed, `is_alive` of the session
becomes False. The processor or negotiator must then stop its work, and must not send or store anything. The
registry may already have removed the session's nodes (entries), so another process may already do this work.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import Any

from hmb.hailstorm.registry.sessions import SessionExpiredError, Watch, session_expired
from hmb.hailstorm.wire import FrameSocket

LOGGER = logging.getLogger(__name__)
ANSWER_TIMEOUT = 10.0  # seconds that a client waits for the answer to a request


class RemoteRegistry:
    """A client of a registry that runs in another process.

    `address` is the pair (`host`, `port`) at which the registry server listens.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self._sessions: list[RemoteSession] = []

    def join(self, name: str) -> RemoteSession:
        session = RemoteSession(self.address, name)
        self._sessions.append(session)
        return session

    def close(self) -> None:
        for session in self._sessions:
            session.close()


class RemoteSession:
    """A session with a registry in another process. The session has its own connection."""

    def __init__(self, address: tuple[str, int], name: str) -> None:
        self.name = name
        self.is_alive = True
        self._socket = FrameSocket.connect(address, ANSWER_TIMEOUT)
        # The queue needs no limit, because it contains at most two items: an answer and a message that the session has
        # ended. `_lock` allows only one request at a time, so a second answer cannot arrive.
        self._answers: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()
        self._watches: list[tuple[str, Watch]] = []
        self._lock = threading.Lock()  # held from a request to its answer, so each answer belongs to one request
        self._ended = threading.Event()
        self._socket.send(["join", name])
        self._timeout = float(self._socket.receive()[1])
        # `_read` waits without a time limit, because the registry sometimes sends nothing for hours. If a request gets
        # no answer in time, `_ask` calls `close`, which ends the wait. If the registry's process or machine fails, the
        # operating system closes the connection.
        self._socket.set_timeout(None)
        for target in (self._read, self._beat):
            threading.Thread(target=target, name=f"hailstorm-session-{name}", daemon=True).start()

    def create(self, path: str, value: bytes) -> bool:
        return bool(self._ask(["create", path, value]))

    def write(self, path: str, value: bytes) -> None:
        self._ask(["write", path, value])

    def watch(self, prefix: str, watch: Watch) -> None:
        self._watches.append((prefix, watch))
        self._ask(["watch", prefix])

    def close(self) -> None:
        self.is_alive = False
        self._ended.set()
        self._socket.close()

    def _ask(self, request: list[Any]) -> Any:
        with self._lock:
            if not self.is_alive:
                raise session_expired(self.name)
            try:
                self._socket.send(request)
                status, value = self._answers.get(timeout=ANSWER_TIMEOUT)
            except (OSError, queue.Empty) as error:
                self.close()
                raise SessionExpiredError(f"the registry does not answer {self.name}: {error}") from error
        if status != "ok":
            raise SessionExpiredError(str(value))
        return value

    def _read(self) -> None:
        try:
            while True:
                what, *rest = self._socket.receive()
                if what == "changed":
                    self._changed(*rest)
                else:
                    self._answers.put([what, *rest])
        except (OSError, ValueError) as error:
            if self.is_alive:
                LOGGER.warning("the session of %s has expired: %s", self.name, error)
        self.close()
        self._answers.put(["expired", str(session_expired(self.name))])

    def _changed(self, path: str, value: bytes | None) -> None:
        for prefix, watch in self._watches:
            if path.startswith(prefix):
                watch(path, value)

    def _beat(self) -> None:
        while not self._ended.wait(self._timeout / 4):
            try:
                self._socket.send(["beat"])
            except OSError:
                return
