"""`Registry` and `RegistrySession`: the operations that every registry and every session has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hmb.hailstorm.errors import HailstormError

MASTER = "master"
LIVING = "living/"

Watch = Callable[[str, bytes | None], None]  # takes a path and its new value; the value is None if the node is gone


class SessionExpiredError(HailstormError):
    """A registry session has expired, or has tried to write a node that it does not own.

    A node is an entry of the registry. Its owner is the session that created it. When a session expires, the
    registry removes all nodes of this session.
    """


def session_expired(name: str) -> SessionExpiredError:
    """Return the error for an operation of a session that has ended."""
    return SessionExpiredError(f"the session of {name} has ended")


def foreign_node(name: str, path: str) -> SessionExpiredError:
    """Return the error for a session that tries to write a node that it does not own.

    `name` is the name of the session, and `path` is the path of the node.
    """
    return SessionExpiredError(f"{name}: the node {path} does not belong to this session")


class RegistrySession(Protocol):
    """The connection of one processor or negotiator to a registry. Any thread may use this connection."""

    def create(self, path: str, value: bytes) -> bool:
        """Create a node that belongs to this session, and return True. If the node exists already, return False.

        Raises SessionExpiredError if the session has expired.
        """

    def write(self, path: str, value: bytes) -> None:
        """Change the value of a node that this session has created.

        Raises SessionExpiredError if the session has expired, or if this session does not own the node.
        """

    def watch(self, prefix: str, watch: Watch) -> None:
        """Report each node whose path begins with `prefix`, and each later change of the node, to a callback.

        The callback, `watch`, takes the node's path and value. The value of a removed node is None. The callback must
        not block. The calls for one node come in the order of its changes.
        """

    @property
    def is_alive(self) -> bool:
        """Whether this process still considers the session open. The registry may already have ended the session.

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
