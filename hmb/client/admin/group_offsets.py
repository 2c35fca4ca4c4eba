"""What groups have committed: to read, to set anew, to delete.

A committed offset is the next one that the group will read.  Who sets it for a group does what a member does, with no
member id and no generation; the coordinator allows that while the group has no members, for these know better.
Kafka 0.8.2 has no groups, but keeps what consumers commit under a name of a group: that can be read and set.
"""

from collections.abc import Iterable, Mapping

from hmb.client.admin.base import AdminBase, by_topic, will_pass
from hmb.client.connection import Connection
from hmb.client.errors import answered_error
from hmb.client.membership import OffsetAndMetadata
from hmb.client.metadata import TopicPartition
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from hmb.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

FIRST_VERSION_OF_ALL_TOPICS = 2
FIRST_VERSION_OF_SEVERAL_GROUPS = 8
NEWEST_OFFSET_FETCH = NEWEST_OFFSET_COMMIT = 9  # 10 names topics by their ids, which deleted topics no longer have
NOTHING = -1  # committed


class GroupOffsetsAdmin(AdminBase):
    def list_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed in these partitions, or in all; nothing for a partition without an offset.

        KafkaError for the first partition that fails.  Needs Kafka 0.8.2.
        """
        topics = None if partitions is None else by_topic(partitions)

        def ask(connection: Connection) -> dict[TopicPartition, OffsetAndMetadata]:
            version = connection.version_of(OffsetFetchRequest, NEWEST_OFFSET_FETCH)
            wanted = topics
            if topics is None and version < FIRST_VERSION_OF_ALL_TOPICS:
                wanted = {topic.name: list(topic.leaders) for topic in self.cluster.topics()}
            response: OffsetFetchResponse = connection.send(_fetch_request(group, wanted, version), version)
            return _committed(group, response, version)

        return self._at_coordinator(group, ask)

    def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Set what a group has committed, None for each partition that was set.

        The group must have no members: UNKNOWN_MEMBER_ID says that it has some.  Needs Kafka 0.8.2.
        """
        request = OffsetCommitRequest(group_id=group)
        partition = OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition
        for topic, numbers in by_topic(offsets).items():
            committed = []
            for number in numbers:
                offset = offsets[TopicPartition(topic, number)]
                offset = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
                committed.append(
                    partition(
                        partition_index=number,
                        committed_offset=offset.offset,
                        committed_leader_epoch=offset.leader_epoch,
                        committed_metadata=offset.metadata,
                    )
                )
            request.topics.append(OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=committed))

        def ask(connection: Connection) -> dict[TopicPartition, KafkaError | None]:
            version = connection.version_of(OffsetCommitRequest, NEWEST_OFFSET_COMMIT)
            response: OffsetCommitResponse = connection.send(request, version)
            answers = {
                TopicPartition(topic.name, answer.partition_index): _error(topic.name, answer)
                for topic in response.topics
                for answer in topic.partitions
            }
            for error in filter(will_pass, answers.values()):
                raise error  # of the group, told for each partition
            return answers

        return self._at_coordinator(group, ask) if request.topics else {}

    def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Forget what a group has committed in these partitions, None for each that is forgotten.

        GROUP_SUBSCRIBED_TO_TOPIC where a member reads the topic.  Needs Kafka 2.4.
        """
        request = OffsetDeleteRequest(group_id=group)
        partition = OffsetDeleteRequest.OffsetDeleteRequestTopic.OffsetDeleteRequestPartition
        for topic, numbers in by_topic(partitions).items():
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

        return self._at_coordinator(group, ask)


def check_group(group: str, number: int, message: str | None = None) -> None:
    """Raise the error that was answered for a group, if it is one."""
    if number == ErrorCode.GROUP_ID_NOT_FOUND:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group!r}")
    if number:
        raise answered_error(f"group {group!r}", number, message)


def _error(
    topic: str,
    answer: OffsetCommitResponse.OffsetCommitResponseTopic.OffsetCommitResponsePartition
    | OffsetDeleteResponse.OffsetDeleteResponseTopic.OffsetDeleteResponsePartition,
) -> KafkaError | None:
    if not answer.error_code:
        return None
    return answered_error(TopicPartition(topic, answer.partition_index), answer.error_code)


def _fetch_request(group: str, topics: Mapping[str, list[int]] | None, version: int) -> OffsetFetchRequest:
    if version < FIRST_VERSION_OF_SEVERAL_GROUPS:
        by_name = OffsetFetchRequest.OffsetFetchRequestTopic
        return OffsetFetchRequest(
            group_id=group,
            topics=None
            if topics is None
            else [by_name(name=name, partition_indexes=numbers) for name, numbers in topics.items()],
        )
    asked = OffsetFetchRequest.OffsetFetchRequestGroup
    wanted = None
    if topics is not None:
        wanted = [
            asked.OffsetFetchRequestTopics(name=name, partition_indexes=numbers) for name, numbers in topics.items()
        ]
    return OffsetFetchRequest(groups=[asked(group_id=group, topics=wanted)])


def _committed(group: str, response: OffsetFetchResponse, version: int) -> dict[TopicPartition, OffsetAndMetadata]:
    answer: OffsetFetchResponse | OffsetFetchResponse.OffsetFetchResponseGroup = response
    if version >= FIRST_VERSION_OF_SEVERAL_GROUPS:
        (answer,) = response.groups
    check_group(group, answer.error_code)
    committed = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            name = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code and partition.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise answered_error(name, partition.error_code)  # 0.8.2 has no offset there, which is no error to us
            if partition.committed_offset != NOTHING:
                committed[name] = OffsetAndMetadata(
                    partition.committed_offset, partition.metadata or "", partition.committed_leader_epoch
                )
    return committed
