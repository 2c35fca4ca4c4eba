"""The table of authorization: the operations and the resources for which a client needs permission, for each API.

A rule can name several operations, and a client needs a permission for each of them. If the client lacks the permission
on the cluster, the group or the transactional id, the broker refuses the whole request. A request can also contain a
list, for example of topics. If the client lacks the permission for some items of this list, the broker refuses only
these items.

Source: the section "Authorization" in Kafka's documentation; Kafka's class `KafkaApis`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.enums import AclResourceType
from hmb.protocol.errors import ErrorCode

TOPIC, GROUP = AclResourceType.TOPIC, AclResourceType.GROUP
CLUSTER, TRANSACTIONAL_ID = AclResourceType.CLUSTER, AclResourceType.TRANSACTIONAL_ID
ERRORS = {
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class ItemRule(NamedTuple):
    """The permission that a client needs for each item of a list in a request.

    For example, a DescribeGroups request contains the list `groups`. The client needs the permission DESCRIBE on each
    group in this list.
    """

    field: str
    resource_type: AclResourceType
    operation: Op


class ApiRule(NamedTuple):
    """The permissions that a client needs for one API. Each field belongs to one type of resource.

    For example, `ApiRule(topics=Op.READ)` means that the client needs READ on each topic. If a field is None, the
    client needs no permission on this type of resource.
    """

    cluster: Op | None = None
    transactional_id: Op | None = None
    group: Op | None = None
    topics: Op | None = None
    items: ItemRule | None = None


OPEN = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
}
"""The APIs that every client may use. For the two APIs of tokens, the handlers check who owns the token."""

RULES: Mapping[ApiKey, ApiRule] = {
    ApiKey.PRODUCE: ApiRule(transactional_id=Op.WRITE, topics=Op.WRITE),
    ApiKey.FETCH: ApiRule(topics=Op.READ),
    ApiKey.LIST_OFFSETS: ApiRule(topics=Op.DESCRIBE),
    ApiKey.OFFSET_COMMIT: ApiRule(group=Op.READ, topics=Op.READ),
    ApiKey.JOIN_GROUP: ApiRule(group=Op.READ),
    ApiKey.HEARTBEAT: ApiRule(group=Op.READ),
    ApiKey.LEAVE_GROUP: ApiRule(group=Op.READ),
    ApiKey.SYNC_GROUP: ApiRule(group=Op.READ),
    ApiKey.DESCRIBE_GROUPS: ApiRule(items=ItemRule("groups", GROUP, Op.DESCRIBE)),
    ApiKey.DELETE_RECORDS: ApiRule(topics=Op.DELETE),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ApiRule(topics=Op.DESCRIBE),
    ApiKey.ADD_OFFSETS_TO_TXN: ApiRule(transactional_id=Op.WRITE, group=Op.READ),
    ApiKey.END_TXN: ApiRule(transactional_id=Op.WRITE),
    ApiKey.TXN_OFFSET_COMMIT: ApiRule(transactional_id=Op.WRITE, group=Op.READ, topics=Op.READ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: ApiRule(cluster=Op.ALTER),
    ApiKey.LIST_CONFIG_RESOURCES: ApiRule(cluster=Op.DESCRIBE_CONFIGS),
    ApiKey.DESCRIBE_QUORUM: ApiRule(cluster=Op.DESCRIBE),
    ApiKey.UPDATE_FEATURES: ApiRule(cluster=Op.ALTER),
    ApiKey.DESCRIBE_LOG_DIRS: ApiRule(cluster=Op.DESCRIBE),
    ApiKey.CREATE_PARTITIONS: ApiRule(topics=Op.ALTER),
    ApiKey.DELETE_GROUPS: ApiRule(items=ItemRule("groups_names", GROUP, Op.DELETE)),
    ApiKey.ELECT_LEADERS: ApiRule(cluster=Op.ALTER),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ApiRule(cluster=Op.ALTER),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ApiRule(cluster=Op.DESCRIBE),
    ApiKey.OFFSET_DELETE: ApiRule(group=Op.DELETE, topics=Op.READ),
    ApiKey.DESCRIBE_PRODUCERS: ApiRule(topics=Op.READ),
    ApiKey.DESCRIBE_TRANSACTIONS: ApiRule(items=ItemRule("transactional_ids", TRANSACTIONAL_ID, Op.DESCRIBE)),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ApiRule(items=ItemRule("group_ids", GROUP, Op.DESCRIBE)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: ApiRule(cluster=Op.DESCRIBE_CONFIGS),
    ApiKey.ALTER_CLIENT_QUOTAS: ApiRule(cluster=Op.ALTER_CONFIGS),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: ApiRule(cluster=Op.DESCRIBE),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ApiRule(cluster=Op.ALTER),
    ApiKey.DESCRIBE_ACLS: ApiRule(cluster=Op.DESCRIBE),
    ApiKey.CREATE_ACLS: ApiRule(cluster=Op.ALTER),
    ApiKey.DELETE_ACLS: ApiRule(cluster=Op.ALTER),
    ApiKey.SHARE_GROUP_DESCRIBE: ApiRule(items=ItemRule("group_ids", GROUP, Op.DESCRIBE)),
    ApiKey.SHARE_FETCH: ApiRule(group=Op.READ, topics=Op.READ),
    ApiKey.SHARE_ACKNOWLEDGE: ApiRule(group=Op.READ, topics=Op.READ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: ApiRule(cluster=Op.CLUSTER_ACTION),
    ApiKey.READ_SHARE_GROUP_STATE: ApiRule(cluster=Op.CLUSTER_ACTION),
    ApiKey.WRITE_SHARE_GROUP_STATE: ApiRule(cluster=Op.CLUSTER_ACTION),
    ApiKey.DELETE_SHARE_GROUP_STATE: ApiRule(cluster=Op.CLUSTER_ACTION),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: ApiRule(cluster=Op.CLUSTER_ACTION),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: ApiRule(group=Op.READ, topics=Op.READ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: ApiRule(group=Op.DELETE, topics=Op.READ),
}
"""The APIs whose requests one rule describes. The module guards.py contains a function for each other API."""

SPECIAL: Mapping[ApiKey, str] = {
    ApiKey.METADATA: "DESCRIBE on each topic; for a new topic, CREATE on the topic or on the cluster",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "DESCRIBE on each topic",
    ApiKey.DESCRIBE_CLUSTER: "none; the response contains only operations on the cluster that the client may perform",
    ApiKey.CREATE_TOPICS: "CREATE on the cluster, or on each topic; for the settings in the response, DESCRIBE_CONFIGS",
    ApiKey.FIND_COORDINATOR: "DESCRIBE on the group or on the transactional id; CLUSTER_ACTION for share-partitions",
    ApiKey.OFFSET_FETCH: "DESCRIBE on the group, and on each topic",
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: "DESCRIBE on each group, and on each topic",
    ApiKey.LIST_GROUPS: "DESCRIBE on the cluster for all groups; otherwise DESCRIBE on each group",
    ApiKey.LIST_TRANSACTIONS: "DESCRIBE on each transactional id",
    ApiKey.INIT_PRODUCER_ID: "WRITE on the transactional id; without an id, IDEMPOTENT_WRITE, or WRITE on any topic",
    ApiKey.ADD_PARTITIONS_TO_TXN: "WRITE on the transactional id and on each topic; for brokers, CLUSTER_ACTION",
    ApiKey.WRITE_TXN_MARKERS: "CLUSTER_ACTION or ALTER on the cluster",
    ApiKey.DELETE_TOPICS: "DELETE on each topic",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "READ on the group, and DESCRIBE on each topic that the member names",
    ApiKey.SHARE_GROUP_HEARTBEAT: "READ on the group, and DESCRIBE on each topic that the member names",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "READ on the group, DESCRIBE on each topic; CREATE for new internal topics",
    ApiKey.STREAMS_GROUP_DESCRIBE: "DESCRIBE on the group, and on each topic of its topology",
    ApiKey.DESCRIBE_CONFIGS: "DESCRIBE_CONFIGS on the topic or group; for other resources, on the cluster",
    ApiKey.ALTER_CONFIGS: "ALTER_CONFIGS on the topic or group; for other resources, on the cluster",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "ALTER_CONFIGS on the topic or group; for other resources, on the cluster",
    ApiKey.CREATE_DELEGATION_TOKEN: "none for the client's own token; otherwise CREATE_TOKENS on the owner",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (
        "none for own tokens; otherwise DESCRIBE on the token, or DESCRIBE_TOKENS on the token's owner"
    ),
}
"""The APIs that no rule describes, each with its operations in words (see special_guards.py)."""


def permissions(api: ApiKey) -> str:
    """Return in words which permissions a client needs for an API. The documentation contains the same words."""
    if api in OPEN:
        return "none; every client may send this request"
    return _rule_in_words(api, RULES[api]) if api in RULES else SPECIAL[api]


def _rule_in_words(api: ApiKey, rule: ApiRule) -> str:
    condition = ", if the request has one" if api == ApiKey.PRODUCE else ""
    parts = [
        (rule.cluster, "the cluster"),
        (rule.transactional_id, f"the transactional id{condition}"),
        (rule.group, "the group"),
        (rule.topics, "each topic"),
    ]
    words = [f"{operation.name} on {resource}" for operation, resource in parts if operation is not None]
    if rule.items is not None:
        words.append(f"{rule.items.operation.name} on each {rule.items.resource_type.name.lower().replace('_', ' ')}")
    return "; ".join(words)
