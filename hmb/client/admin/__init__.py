"""Administration: describes and changes the topics, settings, groups, committed offsets and brokers of a cluster.

The class `Admin` has one method for each task. The method sends its request to a broker that can answer it:
    broker                   answers requests about
    any broker               lists of topics, settings of topics
    the controller           creation and deletion of topics
    a partition's leader     offsets and records of the partition
    a group's coordinator    members and committed offsets of the group
    each broker itself       its own settings and data directories

A method that handles several items, for example `delete_topics`, returns a dict. For each item, the dict contains a
result or a KafkaError. So if one topic does not exist, the method still returns the results of the other topics. The
function `raised` returns a result. If the result is a KafkaError, `raised` raises this error.

If the broker is too old for a method, the method raises KafkaError with UNSUPPORTED_VERSION. The error message contains
the name of the missing API.

Read the modules in this order:
1. `base`: finds the right broker for a request, and retries after temporary errors.
2. `topics`: creates, lists, describes and deletes topics.
3. `groups` and `group_offsets`: the members and the committed offsets of groups.

You can skip these modules when you read this folder for the first time:
- `configs`: the settings of topics, brokers, loggers and groups.
- `lag`: counts the records that a group has not read yet, and plans new committed offsets for a group.
- `records`: finds the offset for a timestamp, and deletes records.
- `cluster`: lists the brokers with their versions and data directories, and starts elections of leaders.
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
    """Describes and changes a cluster. Only one thread may use an admin. Times are in seconds.

    ::

        with hmb.Admin("localhost:9092") as admin:
            admin.create_topics([NewTopic("events", partitions=3, configs={"retention.ms": "3600000"})])
            for group in admin.list_groups():
                print(group.group_id, group.state, admin.list_group_offsets(group.group_id))

    "Needs Kafka 2.4" in the docstring of a method means that Kafka 2.4 is the oldest version with the necessary API.
    """
