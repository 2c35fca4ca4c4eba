"""`Admin`: what a cluster has, to look at and to change.

    base            whom to ask: any broker, the controller, a leader, a group's coordinator; when to ask again
    topics          create, list, describe, more partitions, delete
    configs         settings of topics, brokers, loggers and groups
    groups          list, describe, delete, send members away
    group_offsets   what groups have committed
    lag             how far behind groups are, and what a reset would do
    records         offsets of a point in time, deletion of records, what producers left
    cluster         brokers, their versions, their data directories, elections

Where several things are asked for at once, the answer is a dict with a result or a KafkaError for each: one topic that
is missing does not hide the others; `raised` turns it into an exception.  What a broker is too old for is
UNSUPPORTED_VERSION, raised, and names the API that it has not.
"""

from hmb.client.admin.base import raised
from hmb.client.admin.cluster import (
    BrokerDescription,
    BrokerVersions,
    ClusterAdmin,
    ClusterDescription,
    LogDirDescription,
    ReplicaDescription,
)
from hmb.client.admin.configs import ConfigEntry, ConfigResource, ConfigsAdmin, ConfigSynonym
from hmb.client.admin.groups import GroupDescription, GroupListing, GroupsAdmin, MemberDescription
from hmb.client.admin.lag import LagAdmin, PartitionLag, PlannedOffset, ResetTo, ShiftBy
from hmb.client.admin.records import HIGH_WATERMARK, ListedOffset, OffsetSpec, PartitionProducer
from hmb.client.admin.topics import CreatedTopic, NewTopic, PartitionDescription, TopicDescription, TopicsAdmin
from hmb.protocol.enums import ALL_BROKERS, ConfigSource, ResourceType

__all__ = [
    "ALL_BROKERS",
    "HIGH_WATERMARK",
    "Admin",
    "BrokerDescription",
    "BrokerVersions",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "ConfigSynonym",
    "CreatedTopic",
    "GroupDescription",
    "GroupListing",
    "ListedOffset",
    "LogDirDescription",
    "MemberDescription",
    "NewTopic",
    "OffsetSpec",
    "PartitionDescription",
    "PartitionLag",
    "PartitionProducer",
    "PlannedOffset",
    "ReplicaDescription",
    "ResetTo",
    "ResourceType",
    "ShiftBy",
    "TopicDescription",
    "raised",
]


class Admin(TopicsAdmin, ConfigsAdmin, GroupsAdmin, LagAdmin, ClusterAdmin):
    """Looks at a cluster and changes it; belongs to one thread.  Times are in seconds.

        with hmb.Admin("localhost:9092") as admin:
            admin.create_topics([NewTopic("events", partitions=3, configs={"retention.ms": "3600000"})])
            for group in admin.list_groups():
                print(group.group_id, group.state, admin.list_group_offsets(group.group_id))

    Every method works on one thing or several; see there what it needs of the broker.
    """
