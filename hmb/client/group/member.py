"""The interface of a group member: which request the member sends next, and which callback of the consumer comes next.

Each of the two group protocols has one class that implements this interface: `ClassicGroupMember` and
`ConsumerGroupMember`. Both are state machines without threads, clocks and sockets. Therefore a test can drive them step
by step. The parameter `now` is the time in seconds of a clock that never jumps.

Two threads drive a member alternately, under one lock (`membership`)::

    membership thread    next_request -> send it -> response_received, or request_failed     repeat, then wait
    consumer's thread    next_call -> call the listener -> call_finished                     repeat, then fetch records

The coordinator answers every request except a `TopicLookup`. Any broker answers a lookup.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from hmb.client.group.interface import GroupMetadata, MemberSettings
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition

LOGGER = logging.getLogger(__name__)
Owned = frozenset[TopicPartition]
NO_PARTITIONS: Owned = frozenset()
NEVER = float("inf")
LONGEST_BACKOFF = 1.0  # seconds


class ListenerMethod(Enum):
    """A method of the `RebalanceListener`. The value is its name."""

    ON_ASSIGNED = "on_assigned"
    ON_REVOKED = "on_revoked"
    ON_LOST = "on_lost"


class ListenerCall(NamedTuple):
    """A call of the listener that is due."""

    method: ListenerMethod
    partitions: Owned


@dataclass(frozen=True, slots=True)
class TopicLookup:
    """A question to any broker: the partition counts of topics by name, or the names of topics by id."""

    names: frozenset[str] = frozenset()
    ids: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class TopicLookupResult:
    """The answer to a `TopicLookup`. Topics that do not exist are missing in it."""

    counts: Mapping[str, int]
    names: Mapping[UUID, str]


class GroupMember(Protocol):
    """One member of a group. No method waits, and no method raises: a fatal error is stored in `error`."""

    error: KafkaError | None

    @property
    def metadata(self) -> GroupMetadata: ...

    @property
    def assignment(self) -> Owned: ...

    @property
    def is_member(self) -> bool:
        """Whether the member has joined. The coordinator may have removed it since."""

    @property
    def is_stable(self) -> bool:
        """Whether no rebalance is in progress, so that the consumer need not wait for the group."""

    def subscribe(self, topics: Collection[str]) -> None: ...

    # -- called by the consumer's thread

    def polled(self, now: float) -> None:
        """Note that the consumer has polled, so that the member may stay in the group."""

    def next_call(self) -> ListenerCall | None:
        """Return the call of the listener that is due now, or None."""

    def last_call(self) -> ListenerCall | None:
        """Return the call of the listener that is due when the consumer is closed, or None."""

    def call_finished(self, call: ListenerCall) -> None:
        """Update the member after the listener has returned from `call`."""

    def commit_refused(self, code: ErrorCode, identity: GroupMetadata) -> None:
        """Update the member after the coordinator has refused a commit that `identity` sent."""

    def leave_request(self) -> Request | None:
        """Return the request that leaves the group, or None if the coordinator needs none."""

    # -- called by the membership's thread

    def next_request(self, now: float) -> Request | TopicLookup | None:
        """Return the request to send now, or None.

        After `request_failed` the member may return the same request again.
        """

    def deadline(self) -> float:
        """Return the time at which `next_request` may return a request, if no other method is called before."""

    def response_timeout(self, request: Request) -> float | None:
        """Return how many seconds a response may take. None means the timeout of the connection."""

    def response_received(self, request: Request | TopicLookup, response: Any, now: float) -> None: ...

    def request_failed(self, now: float) -> None:
        """Note that a request got no response. The member sends it again after a pause."""

    def fail(self, error: KafkaError) -> None:
        """Store a fatal error. The member sends no more requests, and its partitions are lost."""


def warn_of_missing_polls(settings: MemberSettings) -> None:
    LOGGER.warning(
        "group %r: the consumer has not polled for %g s (max_poll_interval) and leaves the group; it joins again when"
        " it polls. Poll more often, or take fewer records at once.",
        settings.group_id,
        settings.max_poll_interval,
    )


class Backoff:
    """The pause before the next attempt. Each failure doubles it, up to `LONGEST_BACKOFF`."""

    def __init__(self, first: float) -> None:
        self._first = first
        self._failures = 0
        self.retry_at = -NEVER

    def failed(self, now: float) -> None:
        self.retry_at = now + min(self._first * 2**self._failures, LONGEST_BACKOFF)
        self._failures = min(self._failures + 1, 16)

    def answered(self, now: float) -> None:
        """Reset the pause to its first value, unless this response was itself counted as a failure."""
        if self.retry_at <= now:
            self._failures = 0
