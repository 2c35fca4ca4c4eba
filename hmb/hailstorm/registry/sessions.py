"""`Registry` and `RegistrySession`: the operations that every registry and every session has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hmb.hailstorm.errors import HailstormError

MASTER = "master"
LIVING = "living/"

Watch = Callable[[str, bytes | None], None]  # takes a path and its new value; the value is None if the node is gone


class SessionExpiredError(HailstormError):
    """The operation failed because its session with the registry has expired or does not own the node.

    A node is an entry of the registry. When a session expires, the registry removes all nodes that the session has
    created, and the session cannot write any more.
    """


def session_expired(name: str) -> SessionExpiredError:
    """Return the error for an operation of a session that has ended."""
    return SessionExpiredError(f"the session of {name} has ended")


def foreign_node(name: str, path: str) -> SessionExpiredError:
    """Return the error for a write of the session `name` to a node that does not belong to this session."""
    return SessionExpiredError(f"{name}: the node {path} does not belong to this session")


class RegistrySession(Protocol):
    """The connection of one processor or negotiator to a registry. Any thread may use this connection."""

    def create(self, path: str, value: bytes) -> bool:
        """Create a node that belongs to this session, and return True. If the node exists already, return False.

        Raises SessionExpiredError if the session has expired.
        """

    def write(self, path: str, value: bytes) -> None:
        """Change the value of a node of this session.

        Raises SessionExpiredError if the session has expired, or if the node belongs to another session.
        """

    def watch(self, prefix: str, watch: Watch) -> None:
        """Call `watch` with every node whose path begins with `prefix`, and then with each change of such a node.

        The calls come from one thread and in order, until the session ends. `watch` must not block.
        """

    @property
    def is_alive(self) -> bool:
        """Whether the session is still open, as far as this process knows.

        When a session ends, the registry removes the nodes (entries) that the session has created.
        """

    def close(self) -> None:
        """End the session. The registry then removes the nodes (entries) that this session has created."""


class Registry(Protocol):
    """A registry that opens sessions for processors and negotiators."""

    def join(self, name: str) -> RegistrySession:
        """Open a session, and return it. Log messages contain `name`. Raises OSError if no registry answers."""

    def close(self) -> None:
        """End all sessions that this registry object has opened."""
