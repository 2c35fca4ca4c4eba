"""The registry of one process: a dict of nodes, and the functions that watch these nodes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from hmb.hailstorm.registry.sessions import Watch, foreign_node, session_expired


@dataclass
class RegistryNode:
    """The value of a node, and the session that owns the node. The node disappears when this session ends."""

    value: bytes
    owner: LocalSession


class LocalRegistry:
    """A registry of nodes in the memory of this process. Each node is a path with a value.

    A session can watch paths: when a value changes, the registry calls a function of the session. The registry
    holds `lock` during the calls, so the calls come in the order of the changes.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()  # guards the nodes, the list of sessions, and the flags of the sessions
        self.nodes: dict[str, RegistryNode] = {}
        self.sessions: list[LocalSession] = []

    def join(self, name: str) -> LocalSession:
        session = LocalSession(self, name)
        with self.lock:
            self.sessions.append(session)
        return session

    def close(self) -> None:
        for session in list(self.sessions):
            session.close()

    def notify(self, path: str, value: bytes | None) -> None:
        """Pass the path and its new value to every function that watches the path. The caller must hold the lock."""
        for session in list(self.sessions):
            for prefix, watch in session.watches:
                if path.startswith(prefix):
                    watch(path, value)


@dataclass(eq=False)
class LocalSession:
    """A client's session with a `LocalRegistry`. The client is a thread in this process, or another process."""

    registry: LocalRegistry
    name: str
    is_alive: bool = True
    watches: list[tuple[str, Watch]] = field(default_factory=list)

    def create(self, path: str, value: bytes) -> bool:
        with self.registry.lock:
            self._check_alive()
            if path in self.registry.nodes:
                return False
            self.registry.nodes[path] = RegistryNode(value, self)
            self.registry.notify(path, value)
            return True

    def write(self, path: str, value: bytes) -> None:
        with self.registry.lock:
            self._check_alive()
            node = self.registry.nodes.get(path)
            if node is None or node.owner is not self:
                raise foreign_node(self.name, path)
            node.value = value
            self.registry.notify(path, value)

    def watch(self, prefix: str, watch: Watch) -> None:
        with self.registry.lock:
            self._check_alive()
            self.watches.append((prefix, watch))
            for path, node in list(self.registry.nodes.items()):
                if path.startswith(prefix):
                    watch(path, node.value)

    def close(self) -> None:
        with self.registry.lock:
            if not self.is_alive:
                return
            self.is_alive = False
            self.watches.clear()
            self.registry.sessions.remove(self)
            for path in [path for path, node in self.registry.nodes.items() if node.owner is self]:
                del self.registry.nodes[path]
                self.registry.notify(path, None)

    def _check_alive(self) -> None:
        if not self.is_alive:
            raise session_expired(self.name)
