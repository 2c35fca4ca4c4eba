"""The interface that both kinds of groups share.

The table of groups contains groups of the classic protocol (classic/group.py) and of KIP-848 (modern/group.py). Both
are state machines without threads, clocks or disks. A step leaves its effects in two lists: `answers` for waiting
requests, and `writes` for the journal. The caller carries them out (shared_group.py).

For example, the SyncGroup of a leader leaves one `Write` with the group's record. After the record is on disk, the
caller runs `Write.then`, and that step puts the responses of all members into `answers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from hmb.coordinator.journal.records import KeyAndValue
from hmb.coordinator.offsets import CommittedOffset
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """Records that the journal must store together. The caller then runs the next step, `then(error, now)`."""

    records: Sequence[KeyAndValue]
    then: Callable[[KafkaError | None, int], None] = lambda error, now: None


class Commit(NamedTuple):
    """One request to commit offsets, with the identity of the member that sends it."""

    member_id: str
    epoch: int  # the member epoch or the generation; negative if the sender is not a member
    group_instance_id: str | None
    version: int  # the version of OffsetCommit or TxnOffsetCommit
    offsets: Mapping[TopicPartition, CommittedOffset]
    producer: ProducerIdAndEpoch | None = None  # the producer whose transaction contains the commit

    @property
    def is_nobodys(self) -> bool:
        """Whether the commit names no member, as the commits of all producers did until KIP-447."""
        unsaid = self.epoch < 0 and not self.member_id and self.group_instance_id is None
        return self.producer is not None and unsaid


class Group(Protocol):
    """One group of either protocol. `now` is in ms of a clock that never jumps."""

    kind: ClassVar[str]  # the group type in ListGroups responses
    group_id: str
    protocol_type: str | None
    answers: list[tuple[Any, Any]]  # pairs of a waiting request and its response
    writes: list[Write]

    @property
    def state_name(self) -> str: ...

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    @property
    def size(self) -> int:
        """The size of the members' metadata and subscriptions in bytes."""

    @property
    def is_unloaded(self) -> bool:
        """Whether `unload` has ended the group."""

    def resume(self, now: int) -> None:
        """Start the sessions of the restored members."""

    def check_commit(self, commit: Commit, now: int) -> None:
        """Raises KafkaError if the sender is not allowed to commit these offsets."""

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raises KafkaError if the sender is not allowed to fetch offsets."""

    def next_deadline(self) -> int | None:
        """Return the time (ms) of the group's next deadline, or None if the group has none."""

    def tick(self, now: int) -> None: ...

    def unload(self) -> None:
        """End the group, because the broker stops or the group is deleted."""

    def tombstones(self) -> Sequence[KeyAndValue]:
        """Return the tombstones of the group's records. Raises NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
