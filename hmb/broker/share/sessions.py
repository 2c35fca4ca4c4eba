"""Share sessions: the broker remembers which partitions a member of a share group reads.

A member sends the list of its partitions only once. A *share session* stores this list, so that later requests contain
only changes. A session has an epoch, which increases with each request:
    epoch 0        opens a session, and replaces an older session of the member
    epoch 1, 2 ..  the next requests of the session
    epoch -1       closes the session. The broker then releases all records that the member has acquired.

For example, a member opens a session with epoch 0 and the partitions orders-0 and orders-1. Its next request has epoch
1 and no partitions. The broker reads both partitions again. A request with epoch 3 then gets the error
INVALID_SHARE_SESSION_EPOCH, because the broker expects 2.

A share session ends when the connection of its member ends. The broker then releases the records that this member has
acquired. Other members can acquire these records at once, and do not wait until the acquisition locks time out.

Source: KIP-932; Kafka's `ShareSession`, `SharePartitionManager`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from hmb.protocol.enums import FINAL_SESSION_EPOCH, INITIAL_SESSION_EPOCH, INT32_MAX
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import PartitionId


class SessionId(NamedTuple):
    """Identifies a share session by its group and member. A member has at most one share session with a broker."""

    group_id: str
    member_id: str


@dataclass(slots=True)
class ShareSession:
    """One share session, which stores the partitions that a member reads.

    The broker reads the partitions in the order of the keys of `partitions`.
    """

    id: SessionId
    partitions: dict[PartitionId, None] = field(default_factory=dict)
    epoch: int = 1  # the epoch that the next request must have

    def change(self, added: Iterable[PartitionId], removed: Iterable[PartitionId]) -> None:
        """Add and remove the partitions that a request of the member names."""
        self.partitions.update(dict.fromkeys(added))
        for partition in removed:
            self.partitions.pop(partition, None)

    def move_to_end(self, partition: PartitionId) -> None:
        """Move a partition to the end of `partitions`, so that the broker reads the other partitions first."""
        if partition in self.partitions:
            self.partitions[partition] = self.partitions.pop(partition)


class ShareSessions:
    """All share sessions of the broker. Thread-safe."""

    def __init__(self, most: int) -> None:
        """Create an empty collection. The number `most` limits how many sessions the collection can contain."""
        self._most = most
        self._lock = threading.Lock()  # guards the fields below; a thread that holds it takes no other lock
        self._sessions: dict[SessionId, ShareSession] = {}

    def open(self, id: SessionId) -> ShareSession:
        """Open a session, and replace an older session of the member. Raises SHARE_SESSION_LIMIT_REACHED."""
        with self._lock:
            if id not in self._sessions and len(self._sessions) >= self._most:
                raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
            self._sessions[id] = session = ShareSession(id)
            return session

    def next(self, id: SessionId, epoch: int) -> ShareSession:
        """Return the session for a request of a member. The request must have the epoch that the session expects next.

        The epoch -1 is also allowed. It means that the member closes the session, so the method removes the
        session.

        Raises SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        with self._lock:
            session = self._sessions.get(id)
            if session is None:
                raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
            if epoch == FINAL_SESSION_EPOCH:
                del self._sessions[id]
                return session
            if epoch == INITIAL_SESSION_EPOCH or epoch != session.epoch:
                raise KafkaError(
                    ErrorCode.INVALID_SHARE_SESSION_EPOCH, f"the share session expects epoch {session.epoch}"
                )
            session.epoch = 1 if epoch == INT32_MAX else epoch + 1
            return session

    def end(self, session: ShareSession) -> bool:
        """Remove a session whose connection has ended, and return True.

        If the session no longer exists, for example because the member has opened a newer one, return False.
        """
        with self._lock:
            if self._sessions.get(session.id) is not session:
                return False
            del self._sessions[session.id]
            return True
