"""The interface of a group member. A member decides when to send a request, and when to call the rebalance listener.

Two classes implement the interface `GroupMember`: `ClassicGroupMember` for the classic protocol, and
`ConsumerGroupMember` for the consumer protocol. Both are state machines without threads, clocks and sockets, so
a test can run them step by step. The caller passes the current time as the parameter `now`. It is the time in
seconds of a monotonic clock, which never goes back.

Two threads call the methods of a member. They hold a lock during each call, so only one thread at a time uses
the member (see `membership`). Each thread repeats these steps:
    membership thread    calls `next_request`, sends the request, calls `response_received` or `request_failed`
    consumer's thread    calls `next_call`, calls the rebalance listener, calls `call_finished`, fetches records

A member's requests go to the group's coordinator, with one exception: any broker can answer a `TopicLookup`.
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


class ListenerMethod(Enum):
    """One of the three methods of `RebalanceListener`, with its name as value."""

    ON_ASSIGNED = "on_assigned"
    ON_REVOKED = "on_revoked"
    ON_LOST = "on_lost"


class ListenerCall(NamedTuple):
    """The next call of the rebalance listener: the method to call, and the partitions that the method receives."""

    method: ListenerMethod
    partitions: Owned


@dataclass(frozen=True, slots=True)
class TopicLookup:
    """A request for information about topics. Any broker can answer this request.

    The request asks for the number of partitions of each topic in `names`, and for the topic name of each id in
    `ids`.
    """

    names: frozenset[str] = frozenset()
    ids: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class TopicLookupResult:
    """The response to a `TopicLookup`.

    `counts` maps the name of each topic to its number of partitions. `names` maps each topic id to the topic's
    name. Topics that do not exist have no entry.
    """

    counts: Mapping[str, int]
    names: Mapping[UUID, str]


class GroupMember(Protocol):
    """One member of a group. Its methods never wait and raise no exceptions. The field `error` stores a fatal error."""

    error: KafkaError | None

    @property
    def metadata(self) -> GroupMetadata: ...

    @property
    def assignment(self) -> Owned: ...

    @property
    def is_member(self) -> bool:
        """True if the member is in the group, as far as the client knows."""

    @property
    def is_stable(self) -> bool:
        """True if no rebalance is in progress. During a rebalance, `poll` waits, at most until its timeout."""

    def subscribe(self, topics: Collection[str]) -> None: ...

    # -- called by the consumer's thread

    def polled(self, now: float) -> None:
        """Store the time of a poll. A member leaves the group if its consumer has not polled for a long time."""

    def next_call(self) -> ListenerCall | None:
        """Return the next call of the rebalance listener, or None if no call is necessary now."""

    def last_call(self) -> ListenerCall | None:
        """Return the call of the rebalance listener that is necessary when the consumer closes.

        Return None if the member owns no partition.
        """

    def call_finished(self, call: ListenerCall) -> None:
        """Update the member's state after the rebalance listener has returned from `call`."""

    def commit_refused(self, code: ErrorCode, identity: GroupMetadata) -> None:
        """Update the member's state after the coordinator has refused an offset commit with the error `code`.

        `identity` contains the member id and the generation in the refused commit. If the member now has another id or
        generation, the refusal is out of date, and the method does nothing.
        """

    def leave_request(self) -> Request | None:
        """Return the request with which the member leaves the group, or None if no request is necessary."""

    # -- called by the membership's thread

    def next_request(self, now: float) -> Request | TopicLookup | None:
        """Return the next request, or None if no request is necessary now.

        If the last request has failed, the method may return the same request again.
        """

    def deadline(self) -> float:
        """Return the time at which the next request is due. Before this time, `next_request` returns None.

        A call of another method, for example `polled`, can change this time. The caller then calls `deadline` again.
        """

    def response_timeout(self, request: Request) -> float | None:
        """Return the timeout (seconds) for the response. None means the default timeout of the connection."""

    def response_received(self, request: Request | TopicLookup, response: Any, now: float) -> None: ...

    def request_failed(self, now: float) -> None:
        """Start a pause after a failed request. Until the pause is over, `next_request` returns no request."""

    def fail(self, error: KafkaError) -> None:
        """Store a fatal error. From then on the member sends no requests, and its partitions are lost."""


def warn_of_missing_polls(settings: MemberSettings) -> None:
    LOGGER.warning(
        "group %r: the consumer has not polled for %g s (max_poll_interval) and leaves the group; it joins again when"
        " it polls. Poll more often, or take fewer records at once.",
        settings.group_id,
        settings.max_poll_interval,
    )
