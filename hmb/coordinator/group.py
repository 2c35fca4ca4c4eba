"""The interface of a group, and its errors. Classic, KIP-848, share and streams groups have this interface.

The table of groups contains four kinds of groups: classic (classic/group.py), KIP-848 (consumer/group.py),
share (share/group.py) and streams (streams/group.py). A group is a state machine that uses no threads and no
disk. Each step changes the group, and adds results to three lists: `responses` for waiting requests, `writes`
for records, and `event_texts` for descriptions of what happened. The caller (group_runner.py) then sends the
responses, stores the records in the journal, and adds the descriptions to the broker's list of events.

A group does not read the system's clock. Its caller provides two kinds of time. For deadlines, the methods of
the group receive the time of a clock that never goes back. For timestamps in records, the group calls a
function that returns the time since 1970. A test can therefore choose all times that a group uses. Only the
ids that a group creates are random.

For example, the leader of a classic group sends SyncGroup with the assignments of all members. The group
adds a `Write` to the list `writes`. The `Write` contains a record with these assignments, and a function
`on_stored`. `GroupRunner` writes the record to the journal, and then calls `on_stored`. This function adds
responses for the waiting members to the group's list `responses`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from hmb.coordinator.journal.records import KeyAndValue
from hmb.coordinator.offsets import CommittedOffset
from hmb.protocol.enums import GroupType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.records.producer_numbers import ProducerIdAndEpoch


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """Records that the journal stores together.

    `GroupRunner` writes the records, and then calls `on_stored(error, now)`. If the write has failed, `error` is
    the reason. Otherwise, `error` is None.
    """

    records: Sequence[KeyAndValue]
    on_stored: Callable[[KafkaError | None, int], None] = lambda error, now: None


class Commit(NamedTuple):
    """A request to commit offsets, and the identity of its sender."""

    member_id: str
    epoch: int  # the sender's member epoch or generation; negative if the sender is not a member
    group_instance_id: str | None
    version: int  # the version of OffsetCommit or TxnOffsetCommit
    offsets: Mapping[TopicPartition, CommittedOffset]
    producer: ProducerIdAndEpoch | None = None  # the producer whose transaction contains the commit, if any

    @property
    def names_no_member(self) -> bool:
        """Whether the commit is part of a transaction and contains no member id.

        Older producers, which do not support KIP-447, never send a member id in a transaction.
        """
        no_member = self.epoch < 0 and not self.member_id and self.group_instance_id is None
        return self.producer is not None and no_member


def unloaded(group_id: str, code: ErrorCode) -> KafkaError:
    """Return the error for a request that arrives after the group was deleted, or while the broker stops."""
    return KafkaError(code, f"group {group_id!r} was deleted, or the broker stops")


def check_empty(group: Group) -> None:
    """Raise GROUP_ID_NOT_FOUND if the group is already deleted, and NON_EMPTY_GROUP if it has members."""
    if group.is_unloaded:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} not found.")
    if not group.is_empty:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"{group.kind.capitalize()} group {group.group_id} is not empty.")


class Group(Protocol):
    """A group of any kind. The parameter `now` is the current time in ms, from a clock that never goes back."""

    kind: ClassVar[GroupType]  # the group type in ListGroups responses
    group_id: str
    responses: list[tuple[Any, Any]]  # pairs (waiting request, response)
    writes: list[Write]
    event_texts: list[str]  # for example "rebalance after generation 3, because member a leaves"

    @property
    def successor(self) -> Group | None:
        """The classic group that replaces this KIP-848 group in a downgrade, or None (migration/)."""

    @property
    def protocol_type(self) -> str | None: ...

    @property
    def state_name(self) -> str: ...

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    @property
    def size(self) -> int:
        """The sum of the sizes of all members' metadata and subscriptions, in bytes."""

    @property
    def is_unloaded(self) -> bool:
        """Whether the broker no longer uses the group, because the method `unload` was called."""

    def resume(self, now: int) -> None:
        """Start the session of each member that has none, after the broker has restored the group from the journal."""

    def check_commit(self, commit: Commit, now: int) -> None:
        """Raise KafkaError if the sender of the commit is not allowed to commit these offsets."""

    def reads(self, topic: str) -> bool:
        """Return whether a member reads the topic. Return True if the group does not know its members' topics."""

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise KafkaError if a client with this member id and epoch is not allowed to fetch committed offsets."""

    def last_heartbeats(self) -> dict[str, int]:
        """Return the time (ms) of each member's last heartbeat, by member id."""

    def next_deadline(self) -> int | None:
        """Return the time (ms) of the group's next deadline, or None if the group has none."""

    def tick(self, now: int) -> None: ...

    def unload(self) -> None:
        """Answer all waiting requests with an error, because this group will no longer be used.

        The broker calls this method in three cases:

        - The broker shuts down.
        - The broker deletes the group.
        - A group with another protocol replaces this group (migration/).
        """

    def tombstones(self) -> Sequence[KeyAndValue]:
        """Return tombstones: the records that delete the group from the journal.

        Raises NON_EMPTY_GROUP if the group has members, and GROUP_ID_NOT_FOUND if the group is already deleted.
        """
