"""Functions that several handlers use to make their responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Protocol, TypeVar
from uuid import UUID

from hmb.broker.authorized import GROUP_OPERATIONS
from hmb.broker.deferred import Deferred
from hmb.broker.errors import CloseConnection, error_code_in
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.journal.partition import QueuedRecords
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.schema import Response

MAX_REPETITIONS = 2


class TopicResponse(Protocol):
    """The entry of one topic in the response to OffsetCommit or OffsetDelete."""

    name: str
    partitions: list[Any]


class DescribeRequest(Protocol):
    """A ConsumerGroupDescribe, ShareGroupDescribe or StreamsGroupDescribe request."""

    group_ids: list[str]
    include_authorized_operations: bool


class DescribedGroup(Protocol):
    """The entry of one group in a response that describes groups.

    Such a response belongs to DescribeGroups, ConsumerGroupDescribe, ShareGroupDescribe or StreamsGroupDescribe.
    """

    error_code: int
    authorized_operations: int


T = TypeVar("T", bound=TopicResponse)
G = TypeVar("G", bound=DescribedGroup)
R = TypeVar("R", bound=Response)


def merged(refused: Sequence[T], accepted: Sequence[T]) -> list[T]:
    """Merge two lists of topic entries into one list for a response, in the order that Kafka uses.

    Each topic entry contains partitions of one topic. The handler has refused the partitions in `refused`, and
    accepted the partitions in `accepted`.

    If `refused` is empty, return the entries in `accepted` unchanged, even if two entries are for the same
    topic. Otherwise, merge all entries of a topic into one entry: first its refused partitions, then its
    accepted partitions.
    """
    if not refused:
        return list(accepted)
    topics: dict[tuple[str, UUID | None], T] = {}
    for topic in (*refused, *accepted):
        known = topics.setdefault((topic.name, getattr(topic, "topic_id", None)), topic)
        if known is not topic:
            known.partitions += topic.partitions
    return list(topics.values())


def committed(
    groups: GroupCoordinator, begin: Callable[[], QueuedRecords], response: R, fail: Callable[[KafkaError], None]
) -> R | Deferred[R]:
    """Commit offsets. Return a deferred response, which the broker sends when the offsets are on disk.

    The function `begin` adds the offsets to the records that wait to be written to `__consumer_offsets`. If `begin`
    raises KafkaError, the broker writes no offsets, and `committed` returns the response at once.

    If `begin` or the write to disk raises KafkaError, the function `fail` puts this error into the response.
    """

    def result() -> R:
        try:
            groups.offsets.finish(queued)
        except KafkaError as error:
            fail(error)
        return response

    try:
        queued = begin()
    except KafkaError as error:
        fail(error)
        return response
    return Deferred(result)


def metadata_length(metadata: str | None) -> int:
    """Return the length of an offset's metadata. Like Kafka, count units of UTF-16: an emoji counts as two."""
    if not metadata or metadata.isascii():
        return len(metadata or "")
    return len(metadata.encode("utf-16-le")) // 2


def check_named_once(times: int) -> None:
    """Raise INVALID_REQUEST if `times`, the number of times that a request contains one topic, is greater than 1."""
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the request contains this topic twice")


def check_repetitions(names: Iterable[Hashable]) -> None:
    """Raise CloseConnection if `names` contains the same name more than MAX_REPETITIONS times.

    A name is short, but the description of a group or a topic can take megabytes of memory. If a small request
    contained the same name a thousand times, the response could need gigabytes of memory.
    """
    for name, times in Counter(names).items():
        if times > MAX_REPETITIONS:
            raise CloseConnection(f"a request names {str(name)[:100]!r} {times} times")


def describe_all(request: DescribeRequest, empty: Callable[..., G], describe: Callable[[str], G]) -> list[G]:
    """Return one description for each group id in the request.

    The function `describe` returns the description of a group. If `describe` raises KafkaError, or if the group id
    is empty, the description contains only the group id and the error. The function `empty` creates a description
    with only the group id, and `describe_all` then adds the error.

    Raises CloseConnection if the request contains the same group more than MAX_REPETITIONS times.
    """

    def described(group_id: str) -> G:
        group = empty(group_id=group_id)
        if not group_id:
            group.error_code = ErrorCode.INVALID_GROUP_ID
            return group
        with error_code_in(group):
            return describe(group_id)
        return group

    check_repetitions(request.group_ids)
    groups = [described(group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        add_authorized_operations(groups)
    return groups


def add_authorized_operations(groups: Iterable[DescribedGroup]) -> None:
    """For each group without an error, set `authorized_operations` to all operations that exist for groups.

    If the broker checks ACLs, it later removes the operations that the client is not allowed to perform
    (security/acls/rule_guards.py).
    """
    for group in groups:
        if not group.error_code:
            group.authorized_operations = GROUP_OPERATIONS
