"""The class `Admin`, which describes and changes the topics, settings, groups and brokers of a cluster.

The class `Admin` has one method for each task. Each method calls a function with the same name in a module of this
folder. The function gets a `Brokers` object as its first argument. It sends its request to a broker that can answer the
request:
    broker                   answers requests about
    any broker               lists of topics, settings of topics
    the controller           creation and deletion of topics
    a partition's leader     offsets and records of the partition
    a group's coordinator    members and committed offsets of the group
    each broker itself       its own settings and data directories

Some methods handle several items, and return a dict with a result or a KafkaError for each item. For example,
an application calls `delete_topics` with three topics, and one of them does not exist. The method deletes the
other two, and the dict contains a KafkaError for the missing topic. An application may prefer an exception. It
then calls `raised(value)` for each value in the dict. `raised` raises a value that is a KafkaError, and returns
any other value.

If the broker is too old for a method of `Admin`, the method raises KafkaError with UNSUPPORTED_VERSION. The error
message contains the name of the API that the broker does not support.

Read the modules in this order:
1. `brokers`: finds the right broker for a request, and retries after temporary errors.
2. `topics`: creates, lists, describes and deletes topics.
3. `groups` and `group_offsets`: the members and the committed offsets of groups.

You can skip these modules when you read this folder for the first time:
- `configs`: the settings of topics, brokers, loggers, groups and client metrics.
- `lag`: counts the records that a group has not read yet, and plans new offsets for a group.
- `records`: finds the offset for a timestamp, and deletes records.
- `whole_batches`: fetches batches byte for byte, for backups and for the web page of a broker.
- `users`: lists users, sets their passwords, and removes users.
- `acls`: creates, lists and deletes ACLs.
- `quotas`: sets, lists and removes quotas.
- `delegation_tokens`: creates, renews and lists delegation tokens, and ends their validity.
- `share_groups`: the start offsets of share groups.
- `cluster`: lists the brokers with their versions and data directories, and starts elections of leaders.
"""

from collections.abc import Iterable
from typing import Self

from hmb.client.admin import (
    acls,
    cluster,
    configs,
    delegation_tokens,
    group_offsets,
    groups,
    lag,
    quotas,
    records,
    share_groups,
    topics,
    users,
)
from hmb.client.admin.acls import AclBinding, AclBindingFilter
from hmb.client.admin.brokers import Brokers, raised
from hmb.client.admin.cluster import (
    BrokerDescription,
    BrokerVersions,
    ClusterDescription,
    LogDirDescription,
    ReplicaDescription,
)
from hmb.client.admin.configs import ConfigEntry, ConfigResource, ConfigSynonym
from hmb.client.admin.delegation_tokens import DelegationToken
from hmb.client.admin.groups import GroupDescription, GroupListing, MemberDescription
from hmb.client.admin.lag import PartitionLag, PlannedOffset, ResetTo, ShareResetTo, ShiftBy
from hmb.client.admin.quotas import ClientQuotaEntity
from hmb.client.admin.records import HIGH_WATERMARK, OffsetSpec, PartitionProducer
from hmb.client.admin.share_groups import ShareOffset
from hmb.client.admin.topics import CreatedTopic, NewTopic, PartitionDescription, TopicDescription
from hmb.client.delegation import delegated
from hmb.client.metadata import Cluster
from hmb.client.offsets import ListedOffset
from hmb.client.security.settings import ClientSecurity, SecuritySettings
from hmb.client.settings import CLIENT_ID, REQUEST_TIMEOUT
from hmb.protocol.enums import ALL_BROKERS, ConfigSource, ResourceType

__all__ = [
    "ALL_BROKERS",
    "HIGH_WATERMARK",
    "AclBinding",
    "AclBindingFilter",
    "Admin",
    "BrokerDescription",
    "BrokerVersions",
    "ClientQuotaEntity",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "ConfigSynonym",
    "CreatedTopic",
    "DelegationToken",
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
    "ShareOffset",
    "ShareResetTo",
    "ShiftBy",
    "TopicDescription",
    "raised",
]


class Admin:
    """A client that describes and changes a cluster. Only one thread may use an admin. Times are in seconds.

    ::

        with hmb.Admin("localhost:9092") as admin:
            admin.create_topics([NewTopic("events", partitions=3, configs={"retention.ms": "3600000"})])
            for group in admin.list_groups():
                print(group.group_id, group.state, admin.list_group_offsets(group.group_id))

    "Needs Kafka 2.4" in the docstring of a method means that Kafka 2.4 is the oldest version with the necessary API.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str],
        client_id: str = CLIENT_ID,
        request_timeout: float = REQUEST_TIMEOUT,
        security: SecuritySettings | ClientSecurity | None = None,
    ) -> None:
        """Create an admin. It connects to the cluster when it needs a connection for the first time.

        `security` contains the settings of TLS and SASL, with Kafka's names: `{"security.protocol": "SSL"}`.
        """
        self._brokers = Brokers(bootstrap_servers, client_id, request_timeout, security)

    create_topics = delegated("_brokers", topics.create_topics)
    delete_topics = delegated("_brokers", topics.delete_topics)
    list_topics = delegated("_brokers", topics.list_topics)
    describe_topics = delegated("_brokers", topics.describe_topics)
    create_partitions = delegated("_brokers", topics.create_partitions)

    list_offsets = delegated("_brokers", records.list_offsets)
    delete_records = delegated("_brokers", records.delete_records)
    describe_producers = delegated("_brokers", records.describe_producers)

    list_groups = delegated("_brokers", groups.list_groups)
    describe_groups = delegated("_brokers", groups.describe_groups)
    delete_groups = delegated("_brokers", groups.delete_groups)
    remove_members = delegated("_brokers", groups.remove_members)

    list_group_offsets = delegated("_brokers", group_offsets.list_group_offsets)
    alter_group_offsets = delegated("_brokers", group_offsets.alter_group_offsets)
    delete_group_offsets = delegated("_brokers", group_offsets.delete_group_offsets)
    describe_lag = delegated("_brokers", lag.describe_lag)
    plan_reset = delegated("_brokers", lag.plan_reset)

    list_share_offsets = delegated("_brokers", share_groups.list_share_offsets)
    alter_share_offsets = delegated("_brokers", share_groups.alter_share_offsets)
    delete_share_offsets = delegated("_brokers", share_groups.delete_share_offsets)
    plan_share_reset = delegated("_brokers", lag.plan_share_reset)

    describe_configs = delegated("_brokers", configs.describe_configs)
    alter_configs = delegated("_brokers", configs.alter_configs)

    describe_cluster = delegated("_brokers", cluster.describe_cluster)
    describe_versions = delegated("_brokers", cluster.describe_versions)
    describe_log_dirs = delegated("_brokers", cluster.describe_log_dirs)
    elect_leaders = delegated("_brokers", cluster.elect_leaders)

    list_users = delegated("_brokers", users.list_users)
    set_password = delegated("_brokers", users.set_password)
    delete_user = delegated("_brokers", users.delete_user)

    create_acls = delegated("_brokers", acls.create_acls)
    describe_acls = delegated("_brokers", acls.describe_acls)
    delete_acls = delegated("_brokers", acls.delete_acls)

    describe_quotas = delegated("_brokers", quotas.describe_quotas)
    alter_quotas = delegated("_brokers", quotas.alter_quotas)
    create_token = delegated("_brokers", delegation_tokens.create_token)
    renew_token = delegated("_brokers", delegation_tokens.renew_token)
    expire_token = delegated("_brokers", delegation_tokens.expire_token)
    list_tokens = delegated("_brokers", delegation_tokens.list_tokens)

    @property
    def cluster(self) -> Cluster:
        """The metadata of the cluster. Raises RuntimeError if the admin is closed."""
        return self._brokers.cluster

    @property
    def brokers(self) -> Brokers:
        """The connections of this admin. An application can use them for requests that no method of `Admin` sends."""
        return self._brokers

    def close(self) -> None:
        """Close all connections. A second call does nothing."""
        self._brokers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
