"""`SnapshotStore`: the operations that every store has. Any thread may call them."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import StaleEpochError, TopologyError

Fingerprint = dict[str, Any]


class SnapshotListing(NamedTuple):
    """One snapshot, as `hmb hailstorm snapshots` shows it."""

    processor: str
    clock: Clock
    epoch: int
    size: int  # bytes of the state
    error: str | None = None  # why the snapshot cannot be read; else None


class SnapshotStore(Protocol):
    """The store of one topology's snapshots."""

    def claim(self, fingerprint: Fingerprint) -> None:
        """Reserve the store for a topology. Raises TopologyError if it holds snapshots of another shape."""

    def begin_epoch(self) -> int:
        """Return the number of a new epoch, which is larger than all earlier ones.

        From now on, refuse snapshots of earlier epochs.
        """

    def completed(self) -> Clock | None:
        """Return the newest clock that `complete` was called with, or None."""

    def complete(self, epoch: int, clock: Clock) -> None:
        """Record that every processor has saved its state at this clock, and delete all other snapshots.

        Raises StaleEpochError if a newer epoch has begun.
        """

    def save(self, epoch: int, processor: str, clock: Clock, state: bytes) -> None:
        """Store a state durably.

        Raises StaleEpochError if a newer epoch has begun, SnapshotError if the state cannot be stored.
        """

    def clocks(self, processor: str) -> list[Clock]:
        """Return the clocks of the intact snapshots of a processor, the oldest first."""

    def load(self, processor: str, clock: Clock) -> bytes:
        """Return a saved state. Raises SnapshotError if it is missing or damaged."""

    def list(self) -> list[SnapshotListing]:
        """Return all snapshots, damaged ones included."""


def check_epoch(newest: int, epoch: int, what: str) -> None:
    """Raise StaleEpochError if `epoch` is older than the newest one."""
    if epoch < newest:
        raise StaleEpochError(f"{what} of epoch {epoch} is refused: epoch {newest} has begun")


def check_fingerprint(known: Fingerprint | None, present: Fingerprint, where: str) -> None:
    """Raise TopologyError with the differences if the store holds snapshots of a topology with another shape."""
    if known is None or known == present:
        return
    differences = [
        f"{name}: {known.get(name)!r} in the snapshots, {present.get(name)!r} now"
        for name in ("topology", "version")
        if known.get(name) != present.get(name)
    ]
    before, now = known.get("nodes", {}), present["nodes"]
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            differences.append(f"node {name}: {_shape(before.get(name))} in the snapshots, {_shape(now.get(name))} now")
    raise TopologyError(
        f"{where} holds snapshots of another topology ({'; '.join(differences)}). "
        "Use another store, or change the topology back"
    )


def _shape(node: dict[str, Any] | None) -> str:
    return "missing" if node is None else ", ".join(f"{key} {value}" for key, value in node.items())
