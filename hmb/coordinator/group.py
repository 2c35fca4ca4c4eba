"""What all kinds of groups have in common, for the coordinator that keeps them (shared_group.py, groups.py).

Two kinds share the table of groups and its journal: those of the classic protocol (classic_group.py) and those of
KIP-848 (consumer_group.py). Both are state machines without threads, clocks or disks; what must happen outside they
leave in `answers` and `writes` for whoever made the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from hmb.coordinator.offsets import CommittedOffset
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition

KeyAndValue = tuple[bytes, bytes | None]  # a record of the journal; None: the key is gone


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """Records of a group that belong together, to be written; the next step is `then(error, now)`."""

    records: Sequence[KeyAndValue]
    then: Callable[[KafkaError | None, int], None] = lambda error, now: None


class Commit(NamedTuple):
    """What somebody wants to commit, and who says to be a member."""

    member_id: str
    epoch: int  # or the generation; negative: of nobody who is in the group
    group_instance_id: str | None
    version: int  # of OffsetCommit, or TxnOffsetCommit
    offsets: Mapping[TopicPartition, CommittedOffset]
    producer: ProducerIdAndEpoch | None = None  # in whose transaction

    @property
    def is_nobodys(self) -> bool:
        """Of a producer that does not say who has read, as all did before KIP-447."""
        unsaid = self.epoch < 0 and not self.member_id and self.group_instance_id is None
        return self.producer is not None and unsaid


class Group(Protocol):
    """One group. `now` is in ms of a clock that never jumps."""

    kind: ClassVar[str]  # as ListGroups tells it
    group_id: str
    protocol_type: str | None
    answers: list[tuple[Any, Any]]  # requests that waited, each with its answer
    writes: list[Write]

    @property
    def state_name(self) -> str: ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""

    @property
    def size(self) -> int:
        """The memory, in bytes, that the metadata and subscriptions of its members take."""

    @property
    def is_unloaded(self) -> bool:
        """Whether it is no longer the one to ask: see `unload`."""

    def resume(self, now: int) -> None:
        """All is restored: its members have a session's time to be heard of."""

    def check_commit(self, commit: Commit, now: int) -> None:
        """Raises KafkaError where these offsets may not be committed."""

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raises KafkaError where somebody who says to be a member may not ask for offsets."""

    def next_deadline(self) -> int | None:
        """When `tick` has something to do, if nothing else happens before."""

    def tick(self, now: int) -> None: ...

    def unload(self) -> None:
        """The broker stops, or the group is deleted: nothing changes from now on."""

    def tombstones(self) -> Sequence[KeyAndValue]:
        """What deletes the records that are left of it. Raises NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
