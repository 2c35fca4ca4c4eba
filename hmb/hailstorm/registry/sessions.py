"""`Registry` and `RegistrySession`: the operations that every registry has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hmb.hailstorm.errors import HailstormError

MASTER = "master"
LIVING = "living/"

Watch = Callable[[str, bytes | None], None]  # takes a path and its new value, or None if the node has disappeared


class SessionExpiredError(HailstormError):
    """The session has ended. Its nodes have disappeared, and its owner cannot write any more."""


class RegistrySession(Protocol):
    """One member's connection to a registry. Any thread may use it."""

    def create(self, path: str, value: bytes) -> bool:
        """Create a node of this session. Return False if the node exists. Raises SessionExpiredError."""

    def write(self, path: str, value: bytes) -> None:
        """Change the value of a node of this session.

        Raises SessionExpiredError if the session has ended, or if the node belongs to another session.
        """

    def watch(self, prefix: str, watch: Watch) -> None:
        """Call `watch` with all nodes below a prefix, and with each change, until the session ends.

        The calls come from one thread, in order. They must not block.
        """

    @property
    def is_alive(self) -> bool:
        """Whether the session still owns its nodes, as far as this process knows."""

    def close(self) -> None:
        """End the session: its nodes disappear."""


class Registry(Protocol):
    """A registry, which opens sessions."""

    def join(self, name: str) -> RegistrySession:
        """Open a session. `name` appears in logs. Raises OSError if the registry cannot be reached."""

    def close(self) -> None:
        """End all sessions of this registry object."""
