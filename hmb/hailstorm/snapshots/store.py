"""`SnapshotStore`: the operations that every snapshot store has. Any thread may call these operations."""

from __future__ import annotations

from collections.abc import Iterator
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
    error: str | None = None  # the reason why the snapshot cannot be read; None if it is intact


class SnapshotStore(Protocol):
    """A store that keeps all snapshots of one topology."""

    def claim(self, fingerprint: Fingerprint) -> None:
        """Reserve the store for a topology with this fingerprint.

        Raises TopologyError if the store holds snapshots of a topology with another fingerprint.
        """

    def begin_epoch(self) -> int:
        """Begin a new epoch, and return its number, which is larger than the number of every earlier epoch.

        After this call, the store refuses snapshots of earlier epochs.
        """

    def completed(self) -> Clock | None:
        """Return the newest clock at which all processors have saved a snapshot, or None.

        A clock contains one offset for each partition. A snapshot at this clock includes exactly the records below
        these offsets. The method `complete` stores the clock. Before its first call, the result is None.
        """

    def complete(self, epoch: int, clock: Clock) -> None:
        """Mark the snapshots of all processors at `clock` as complete, and delete all other snapshots.

        `clock` contains one offset for each partition. Each start of the topology begins a new epoch. Raises
        StaleEpochError if `epoch` is not the newest epoch.
        """

    def save(self, epoch: int, processor: str, clock: Clock, state: bytes) -> None:
        """Store a snapshot: the state of a processor.

        When the method returns, the snapshot survives a crash (except in a MemorySnapshotStore).

        `clock` contains one offset for each partition. The state includes exactly the records below these offsets.

        Each start of the topology begins a new epoch. Raises StaleEpochError if `epoch` is not the newest epoch, and
        SnapshotError if the state cannot be stored.
        """

    def clocks(self, processor: str) -> list[Clock]:
        """Return the clocks of a processor's intact snapshots, in the order in which the snapshots were saved.

        A clock contains one offset for each partition. The snapshot includes exactly the records below these offsets.
        """

    def load(self, processor: str, clock: Clock) -> bytes:
        """Return the state that `save` has stored for this processor and this clock.

        Raises SnapshotError if the snapshot is missing or damaged.
        """

    def list(self) -> list[SnapshotListing]:
        """Return all snapshots in the store. A damaged snapshot is listed with its error."""


def check_epoch(newest: int, epoch: int, what: str) -> None:
    """Raise StaleEpochError if `epoch` is older than the epoch `newest`."""
    if epoch < newest:
        raise StaleEpochError(f"{what} of epoch {epoch} is refused: epoch {newest} has begun")


def check_fingerprint(known: Fingerprint | None, present: Fingerprint, where: str) -> None:
    """Raise TopologyError if a snapshot store belongs to another topology.

    A fingerprint describes a topology, for example its nodes. `known` is the fingerprint in the store. `present` is
    the fingerprint of the topology that starts. If `known` is None, the store belongs to no topology yet, and the
    function does nothing.

    The error message contains the store's name `where`, and the differences.
    """
    if known is None or known == present:
        return
    differences = [
        f"{name}: {known.get(name)!r} in the snapshots, {present.get(name)!r} now"
        for name in ("topology", "version")
        if known.get(name) != present.get(name)
    ]
    before, now = known.get("nodes", {}), present["nodes"]
    for name in sorted({*before, *now}):
        differences += _differences(name, before.get(name), now.get(name))
    raise TopologyError(
        f"{where} holds snapshots of another topology ({'; '.join(differences)}). "
        "Change the topology back, or use an empty store. With an empty store, the topology reads its topics from the "
        "beginning. In this case, also delete the outputs of each TransactionalSink. If a sink writes to a database, "
        "delete the row of this sink in the table hailstorm_clock. If a sink writes to a topic, delete the "
        "consumer group of this sink"
    )


def _differences(name: str, before: dict[str, Any] | None, now: dict[str, Any] | None) -> Iterator[str]:
    """Compare the stored and the present description of a node or topic. Yield a line for each difference."""
    if before is None or now is None:
        yield f"{name}: {'not ' if before is None else ''}in the snapshots, {'not ' if now is None else ''}there now"
        return
    for key in sorted({*before, *now}):
        if key == "id" and before.get(key) != now.get(key):
            yield f"the {name} was created again after the snapshots"
        elif before.get(key) != now.get(key):
            old, new = before.get(key, "unknown"), now.get(key, "unknown")
            yield f"{name}: {key} {old} in the snapshots, {key} {new} now"
