"""Administration: describe and change topics, settings, groups, offsets and the cluster itself.

`Admin` is one class with a method for each task. Each request goes to the broker that can answer it::

    broker                   answers requests about
    any broker               lists of topics, settings of topics
    the controller           creation and deletion of topics
    a partition's leader     offsets and records of the partition
    a group's coordinator    members and committed offsets of the group
    each broker itself       its own settings and data directories

A method that works on several items returns a dict with a result or a KafkaError for each item. A topic that does not
exist therefore does not hide the results of the others. The function `raised` turns an error into an exception. A
method raises KafkaError with UNSUPPORTED_VERSION if the broker is too old, and the message names the missing API.

Read in this order:

1. `base`: find the right broker, and retry temporary errors.
2. `topics`: create, list, describe and delete topics.
3. `groups` and `group_offsets`: members, and committed offsets.

The other modules have the same structure and can be skipped in a first reading:

- `configs`: settings of topics, brokers, loggers and groups.
- `lag`: the lag of groups, and resets.
- `records`: offsets of timestamps, and deletion of records.
- `cluster`: brokers, their versions, data directories and elections.
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
    """Describes and changes a cluster. An admin belongs to one thread. Times are in seconds.

    ::

        with hmb.Admin("localhost:9092") as admin:
            admin.create_topics([NewTopic("events", partitions=3, configs={"retention.ms": "3600000"})])
            for group in admin.list_groups():
                print(group.group_id, group.state, admin.list_group_offsets(group.group_id))

    The docstring of each method names the oldest version of Kafka that has the necessary API.
    """
