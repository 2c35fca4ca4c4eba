"""Contains functions with which five handlers fill their responses about the states of share-partitions.

Five APIs create, read, write, delete and summarize the states of share-partitions (KIP-932). Their requests have the
same structure: a group, a list of topics, and a list of partitions in each topic. Each response contains one result for
each partition, in the same order.

Three APIs change the states of share-partitions: they create, write or delete states. Their handlers first begin the
changes of all partitions, and then finish them with `finish_changes`. A request can contain 1,000 partitions. If the
handler finished each change before it began the next one, the broker would need 1,000 syncs, which take several
seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from hmb.broker.errors import PartialResponse, error_code_in
from hmb.coordinator.journal.partition import QueuedRecords
from hmb.coordinator.share.coordinator import ShareCoordinator, SharePartitionId
from hmb.protocol.schema import Struct
from hmb.protocol.topics import PartitionId


class StatePartition(Protocol):
    """The entry of one partition in a request: the partition's number and, in some APIs, other fields."""

    partition: int


PartitionT = TypeVar("PartitionT", bound=StatePartition)
TopicResultT = TypeVar("TopicResultT", bound=Struct)
ResultT = TypeVar("ResultT", bound=Struct)


class StateTopic(Protocol[PartitionT]):
    """The entry of one topic in a request."""

    topic_id: UUID
    partitions: list[PartitionT]


class StateRequest(Protocol[PartitionT]):
    """A request of one of the five APIs for states of share-partitions."""

    group_id: str

    @property
    def topics(self) -> Sequence[StateTopic[PartitionT]]: ...


def share_partition_results(
    request: StateRequest[PartitionT],
    results: list[TopicResultT],
    topic_result: type[TopicResultT],
    partition_result: type[ResultT],
) -> Iterator[tuple[SharePartitionId, PartitionT, ResultT]]:
    """For each share-partition in a request, add a new result to the response, and yield a tuple.

    The tuple contains the share-partition's id, its entry in the request, and its result. The result contains
    only the partition number. The caller fills in the other fields.

    `results` is the response's list of topics, which is still empty. For each topic in the request, the function
    appends an object of the class `topic_result`. This object contains results of the class `partition_result`.
    """
    for topic in request.topics:
        new = [partition_result(partition=entry.partition) for entry in topic.partitions]
        results.append(topic_result(topic_id=topic.topic_id, partitions=new))
        for entry, result in zip(topic.partitions, new, strict=True):
            yield SharePartitionId(request.group_id, PartitionId(topic.topic_id, entry.partition)), entry, result


class BegunChange(NamedTuple):
    """A change of a share-partition's state that the broker has begun to write to disk.

    `queued` contains the records that the journal writes for this change. `result` is the share-partition's entry
    in the response.
    """

    id: SharePartitionId
    result: PartialResponse
    queued: QueuedRecords


def finish_changes(coordinator: ShareCoordinator, changes: Iterable[BegunChange]) -> None:
    """Wait until all changes are on disk. If a change fails, store the error code in the `result` of this change."""
    for id, result, queued in changes:
        with error_code_in(result):
            coordinator.finish(id, queued)
