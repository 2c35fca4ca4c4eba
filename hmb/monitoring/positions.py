"""Finds a group's position in each partition: the committed offset or, for a share group, the start offset."""

from __future__ import annotations

from hmb.broker.context import BrokerContext
from hmb.protocol.enums import GroupType
from hmb.protocol.messages.list_groups import ListGroupsResponse
from hmb.protocol.topics import TopicPartition


def positions_of(broker: BrokerContext, group: ListGroupsResponse.ListedGroup) -> dict[TopicPartition, int]:
    """Return the offset up to which a group has read each partition. Raises KafkaError if the group was deleted."""
    if group.group_type != GroupType.SHARE:
        return {each: found.offset for each, found in broker.groups.offsets.fetch(group.group_id, None).items()}
    names = {topic.id: topic.name for topic in broker.topics.all()}
    return {
        TopicPartition(names[each.topic_id], each.partition): state.start_offset
        for each, state in broker.share.start_offsets(group.group_id).items()
        if each.topic_id in names and state.start_offset >= 0  # The offset is negative before the first ShareFetch.
    }
