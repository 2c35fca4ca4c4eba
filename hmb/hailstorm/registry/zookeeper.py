"""Apache ZooKeeper as the registry, as in the Hailstorm paper.

ZooKeeper stores small entries, which it calls *nodes*. The nodes of a topology are *ephemeral*: ZooKeeper deletes such
a node when the session that created it ends. For example, a topology with the processor `count-0` has these nodes:
    /hailstorm/<topology>/master              ephemeral
    /hailstorm/<topology>/living/count-0      ephemeral

A registry needs sessions, nodes that disappear with their session (*ephemeral* nodes), and functions that are called
when a node changes (*watches*; see the module `sessions`). ZooKeeper has all three. Each session uses its own ZooKeeper
client. When the client stops, ZooKeeper removes the nodes of its session.

Each ZooKeeper node has a version, which grows with each write to the node. After a session has written to a node, it
remembers the new version, and sends this version with its next write. If the node has another version by then,
ZooKeeper refuses the write. For example, another session may have created the node again.

When a ZooKeeper session expires, ZooKeeper removes the nodes (entries) that the session has created. The node of a
processor shows that the processor is alive. Without this node, the processor counts as lost, and must not continue. But
the client library kazoo automatically opens a new session. A `ZooKeeperSession` therefore ends when kazoo reports an
expired session, or when an operation fails.

This module needs `pip install 'hmb[zookeeper]'`. Source: Hailstorm, chapter 3.2, "Apache Zookeeper" (the paper uses the
library hzk).
"""

from __future__ import annotations

import threading
from typing import Any

from hmb.defaults import REGISTRY_SESSION_TIMEOUT
from hmb.hailstorm.registry.sessions import LIVING, MASTER, SessionExpiredError, Watch, foreign_node, session_expired

try:
    from kazoo.client import KazooClient, KazooState
    from kazoo.exceptions import KazooException, NodeExistsError
    from kazoo.handlers.threading import KazooTimeoutError
except ImportError as error:
    raise ImportError(f"{error}: to install kazoo, run `pip install 'hmb[zookeeper]'`") from error

START_TIMEOUT = 15.0  # seconds in which a server must answer a new client


class ZooKeeperRegistry:
    """A registry that stores the nodes (entries) of one Hailstorm topology in ZooKeeper.

    `hosts` contains the addresses of the ZooKeeper servers, for example `zk1:2181,zk2:2181`.
    """

    def __init__(self, hosts: str, topology: str, session_timeout: float = REGISTRY_SESSION_TIMEOUT) -> None:
        self._hosts, self._root, self._timeout = hosts, f"/hailstorm/{topology}", session_timeout
        self._sessions: list[ZooKeeperSession] = []

    def join(self, name: str) -> ZooKeeperSession:
        """Open a session, and return it. Raises OSError if no server of the ensemble answers."""
        session = ZooKeeperSession(self._hosts, self._root, self._timeout, name)
        self._sessions.append(session)
        return session

    def close(self) -> None:
        for session in self._sessions:
            session.close()


class ZooKeeperSession:
    """A session of ZooKeeper. Each `ZooKeeperSession` has its own connection."""

    def __init__(self, hosts: str, root: str, timeout: float, name: str) -> None:
        self.name = name
        self.is_alive = True
        self._root = root
        self._versions: dict[str, int] = {}  # path of a node of this session -> version of the node
        self._watched: set[str] = set()
        self._lock = threading.Lock()  # guards the set of watched paths
        self._client = KazooClient(hosts, timeout=timeout)
        self._client.add_listener(self._listen)
        try:
            self._client.start(START_TIMEOUT)
        except KazooTimeoutError as error:
            self._client.close()
            raise ConnectionError(f"no ZooKeeper answers at {hosts}: {error}") from error
        self._client.ensure_path(f"{root}/{LIVING}".rstrip("/"))

    def create(self, path: str, value: bytes) -> bool:
        try:
            self._ask(self._client.create, f"{self._root}/{path}", value, ephemeral=True)
        except NodeExistsError:
            return False
        self._versions[path] = 0
        return True

    def write(self, path: str, value: bytes) -> None:
        if path not in self._versions:
            raise foreign_node(self.name, path)
        stat = self._ask(self._client.set, f"{self._root}/{path}", value, version=self._versions[path])
        self._versions[path] = stat.version

    def watch(self, prefix: str, watch: Watch) -> None:
        if MASTER.startswith(prefix):
            self._watch_node(MASTER, watch)
        if LIVING.startswith(prefix):

            def changed(names: list[str]) -> None:
                for name in names:
                    self._watch_node(LIVING + name, watch)

            self._ask(self._client.ChildrenWatch, f"{self._root}/{LIVING}".rstrip("/"), changed)

    def close(self) -> None:
        """End the session. ZooKeeper then removes the nodes (entries) that this session has created."""
        self.is_alive = False
        self._client.stop()
        self._client.close()

    def _watch_node(self, path: str, watch: Watch) -> None:
        """Call `watch` with each new value of one node, until the session ends.

        If the node is deleted and created again, the calls continue.
        """
        key = f"{path} {id(watch)}"
        with self._lock:
            if key in self._watched:
                return
            self._watched.add(key)
        exists = [False]

        def changed(value: bytes | None, stat: Any) -> None:
            # kazoo passes the value None to `changed` if the node was deleted, or if it does not exist yet. In the
            # second case, `changed` does not call `watch`.
            if value is not None or exists[0]:
                exists[0] = value is not None
                watch(path, value)

        self._ask(self._client.DataWatch, f"{self._root}/{path}", changed)

    def _ask(self, operation: Any, *arguments: Any, **options: Any) -> Any:
        if not self.is_alive:
            raise session_expired(self.name)
        try:
            return operation(*arguments, **options)
        except NodeExistsError:
            raise
        except (KazooException, KazooTimeoutError) as error:
            self.is_alive = False
            raise SessionExpiredError(f"{session_expired(self.name)}: {error!r}") from error

    def _listen(self, state: str) -> None:
        if state == KazooState.LOST:
            self.is_alive = False
