"""Contains the methods of `Admin` that list, change and delete the committed offsets of groups.

A committed offset is the offset of the next record that the group reads. Members commit offsets with an OffsetCommit
request. An admin sends the same request, but without a member id and a generation. The coordinator accepts the admin's
request only if the group has no members. In a group with members, the next commit of a member would replace the admin's
offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hmb.client.admin.brokers import Brokers, by_topic, is_temporary
from hmb.client.arguments import by_partition, list_of_partitions
from hmb.client.connection import Connection
from hmb.client.errors import response_error
from hmb.client.group.interface import GroupMetadata, OffsetAndMetadata, with_metadata
from hmb.client.group.offset_messages import (
    NEWEST_BY_NAME,
    commit_codes,
    commit_request,
    fetch_request,
    fetched_offsets,
)
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from hmb.protocol.messages.offset_fetch import FIRST_VERSION_OF_ALL_TOPICS, OffsetFetchRequest
from hmb.protocol.topics import TopicPartition


def list_group_offsets(
    brokers: Brokers,
    group: str,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    require_stable: bool = False,
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the committed offsets of a group. `partitions=None` means all partitions.

    The result contains only partitions with a committed offset.

    An open transaction can contain offsets of the group that are not committed yet. If `require_stable` is true,
    the method waits until this transaction has ended, but at most `request_timeout` seconds.

    If partitions have errors, the method raises the first of these errors. Needs Kafka 0.8.2.
    """
    asked = None if partitions is None else list_of_partitions(partitions)

    def ask(connection: Connection) -> dict[TopicPartition, OffsetAndMetadata]:
        version = connection.version_of(OffsetFetchRequest, NEWEST_BY_NAME)
        wanted = asked
        if wanted is None and version < FIRST_VERSION_OF_ALL_TOPICS:
            wanted = [TopicPartition(it.name, number) for it in brokers.cluster.topics() for number in it.leaders]
        request = fetch_request(group, wanted, version, require_stable=require_stable)
        found = fetched_offsets(connection.send(request, version), version)
        check_group(group, found.error_code)
        for partition, code in found.errors.items():
            raise response_error(partition, code)
        return found.committed

    return brokers.at_coordinator(group, ask)


def alter_group_offsets(
    brokers: Brokers, group: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
) -> dict[TopicPartition, KafkaError | None]:
    """Set committed offsets of a group. Return a dict: partition -> error, or None if the offset was set.

    If the group has members, each partition gets the error UNKNOWN_MEMBER_ID. Needs Kafka 0.8.2.
    """
    new = {partition: with_metadata(offset) for partition, offset in by_partition("offsets", offsets, "5").items()}

    def ask(connection: Connection) -> dict[TopicPartition, KafkaError | None]:
        version = connection.version_of(OffsetCommitRequest, NEWEST_BY_NAME)
        response = connection.send(commit_request(GroupMetadata(group), new), version)
        answers = {
            partition: response_error(partition, code) if code else None
            for partition, code in commit_codes(response)
        }
        for error in filter(is_temporary, answers.values()):
            raise error  # A temporary error concerns the whole group, so retry for all partitions.
        return answers

    return brokers.at_coordinator(group, ask) if new else {}


def delete_group_offsets(
    brokers: Brokers, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, KafkaError | None]:
    """Delete committed offsets of a group. Return a dict: partition -> error, or None if the offset was deleted.

    If a member of the group reads the topic, the partition gets the error GROUP_SUBSCRIBED_TO_TOPIC. Needs Kafka 2.4.
    """
    request = OffsetDeleteRequest(group_id=group)
    partition = OffsetDeleteRequest.OffsetDeleteRequestTopic.OffsetDeleteRequestPartition
    for topic, numbers in by_topic(list_of_partitions(partitions)).items():
        deleted = [partition(partition_index=number) for number in numbers]
        request.topics.append(OffsetDeleteRequest.OffsetDeleteRequestTopic(name=topic, partitions=deleted))

    def ask(connection: Connection) -> dict[TopicPartition, KafkaError | None]:
        response: OffsetDeleteResponse = connection.send(request)
        check_group(group, response.error_code)
        return {
            TopicPartition(topic.name, answer.partition_index): _error(topic.name, answer)
            for topic in response.topics
            for answer in topic.partitions
        }

    return brokers.at_coordinator(group, ask)


def check_group(group: str, number: int, message: str | None = None) -> None:
    """Raise KafkaError if `number` is not 0. `number` is the error code in a response about a group."""
    if number == ErrorCode.GROUP_ID_NOT_FOUND:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group!r}")
    if number:
        raise response_error(f"group {group!r}", number, message)


def _error(
    topic: str,
    answer: OffsetDeleteResponse.OffsetDeleteResponseTopic.OffsetDeleteResponsePartition,
) -> KafkaError | None:
    if not answer.error_code:
        return None
    return response_error(TopicPartition(topic, answer.partition_index), answer.error_code)
