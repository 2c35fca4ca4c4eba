"""A member of a group as a state machine: what it has to send next, and what its consumer has to do next.

The two group protocols are two such machines, `ClassicMember` and `ConsumerMember`, without threads, clocks or
sockets; `now` is in seconds of a clock that never jumps. Two threads drive one, in turns, under a lock
(`group_membership`):

    the membership's   next_request -> sends it -> answered, or failed         until there is none; then waits
    the consumer's     next_call -> calls the listener -> called               until there is none; then goes on reading

A request goes to the coordinator, but for a `TopicLookup`, which is a question about topics to any broker.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from hmb.client.group.interface import GroupMetadata, GroupSettings
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition

LOGGER = logging.getLogger(__name__)
Owned = frozenset[TopicPartition]
NOTHING: Owned = frozenset()
NEVER = float("inf")
LONGEST_BACKOFF = 1.0  # seconds


class Event(Enum):
    """What the listener is called for."""

    ASSIGNED = "on_assigned"
    REVOKED = "on_revoked"
    LOST = "on_lost"


class Call(NamedTuple):
    event: Event
    partitions: Owned


@dataclass(frozen=True, slots=True)
class TopicLookup:
    """How many partitions do these topics have, and what are the names of those?"""

    names: frozenset[str] = frozenset()
    ids: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """The answer to a lookup; what does not exist is not in it."""

    counts: Mapping[str, int]
    names: Mapping[UUID, str]


class GroupMember(Protocol):
    """One member. Methods do not wait and do not fail; what is final is left in `error`."""

    error: KafkaError | None

    @property
    def metadata(self) -> GroupMetadata: ...

    @property
    def assignment(self) -> Owned: ...

    @property
    def is_member(self) -> bool:
        """Whether the coordinator knows it, as far as it knows itself."""

    @property
    def is_settled(self) -> bool:
        """Whether the consumer has nothing to wait for."""

    def subscribe(self, topics: Collection[str]) -> None: ...

    # the consumer's thread

    def polled(self, now: float) -> None:
        """The consumer is alive."""

    def next_call(self) -> Call | None:
        """What the listener has to hear now."""

    def last_call(self) -> Call | None:
        """What the listener has to hear when the consumer is closed."""

    def called(self, call: Call) -> None:
        """It has heard it."""

    def commit_refused(self, code: ErrorCode, identity: GroupMetadata) -> None:
        """A commit that went out with this identity was answered so."""

    def leave_request(self) -> Request | None:
        """What to send at the end, once; None if the coordinator needs no word."""

    # the membership's thread

    def next_request(self, now: float) -> Request | TopicLookup | None:
        """What to send now; the same again after it has `failed`, unless that does not matter any more."""

    def deadline(self) -> float:
        """When `next_request` may have something, if nothing else happens before."""

    def patience(self, request: Request) -> float | None:
        """How long an answer may take; None: as long as any other."""

    def answered(self, request: Request | TopicLookup, response: Any, now: float) -> None: ...

    def failed(self, now: float) -> None:
        """It got no answer; to be tried again after a while."""

    def refused(self, error: KafkaError) -> None:
        """It cannot be sent at all."""


def warn_of_silence(settings: GroupSettings) -> None:
    LOGGER.warning(
        "group %r: the consumer has not polled for %g s (max_poll_interval) and leaves the group; it joins again when"
        " it polls. Poll more often, or take fewer records at once.",
        settings.group_id,
        settings.max_poll_interval,
    )


class Backoff:
    """How long to wait before the next attempt: longer with every failure in a row."""

    def __init__(self, first: float) -> None:
        self._first = first
        self._failures = 0
        self.retry_at = -NEVER

    def failed(self, now: float) -> None:
        self.retry_at = now + min(self._first * 2**self._failures, LONGEST_BACKOFF)
        self._failures = min(self._failures + 1, 16)

    def answered(self, now: float) -> None:
        """The row ends, unless the answer was a failure itself."""
        if self.retry_at <= now:
            self._failures = 0
