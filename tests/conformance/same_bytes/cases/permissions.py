"""Test cases for authorization: for each API, users with different ACLs send the same request (see ../permissions.py).

The function `request_of` fills the fields of a request with test values. It finds the fields of each API in the API's
message class, so it needs no further code for a new API.

A list of topics, groups or transactional ids in a request usually contains three names:
- `open`: This resource exists. Some users have permissions only for resources whose names begin with `open`.
- `secret`: This resource exists. Only users with permissions for all resources may see it.
- `missing`: This resource does not exist. A user that may not see `secret` must not be able to distinguish `secret`
  from `missing`.

The requests change as little data in the broker as possible, so that all comparisons can use the same topics and
groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from hmb.broker.handlers import HANDLERS
from hmb.broker.security.acls.splitting import TOPIC_LISTS
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import AclOperation, AclPatternType, AclPermission, AclResourceType, CoordinatorType
from hmb.protocol.enums import ResourceType as Type
from hmb.protocol.fields import version_range
from hmb.protocol.messages import request_class
from hmb.protocol.schema import Struct
from hmb.records import encode_batch

from ..case import SUPER_USER, Case, Step, Topic, captured, case, id_of
from ..fixtures import records
from ..permissions import users_of
from .consumer_groups import ID
from .consumer_groups import join as consumer_join
from .share_groups import join as share_join

NAMES = ("open", "secret", "missing")
GROUP_ID = "open-<name>"
OF_EACH = ["open-<name>", "secret-<name>", "missing"]  # Each comparison with DeleteTopics needs its own topics.
UNKNOWN_PRODUCER = 10**9
TRANSACTIONAL = memoryview(
    encode_batch(records("value"), producer_id=UNKNOWN_PRODUCER, producer_epoch=0, base_sequence=0, transactional=True)
)
EMPTY = (
    *("assignments", "configs", "forgotten_topics_data", "renewers", "acknowledgement_batches", "state_batches"),
    *("deletions", "upsertions"),
)
Values = Mapping[str, Any]
NOTHING: Values = {}
# The values of fields, by the field's name. All other fields have the default value of the message class.
VALUES: Values = {
    **{name: [*NAMES] for name in ("groups", "group_ids", "groups_names", "transactional_ids")},
    **dict.fromkeys(("session_timeout_ms", "rebalance_timeout_ms", "timeout_ms", "transaction_timeout_ms"), 10_000),
    **dict.fromkeys(("include_cluster_authorized_operations", "include_topic_authorized_operations"), True),
    **dict.fromkeys(("producer_id", "v3_and_below_producer_id"), UNKNOWN_PRODUCER),
    **dict.fromkeys(("transactional_id", "v3_and_below_transactional_id"), "open"),
    **dict.fromkeys(("protocol_name", "server_assignor"), "range"),
    "acks": -1,
    "allow_auto_topic_creation": False,
    "count": 2,
    "group_id": GROUP_ID,
    "include_authorized_operations": True,
    "num_partitions": 1,
    "partition_max_bytes": 1 << 20,
    "protocol_type": "consumer",
    "records": memoryview(encode_batch(records("value"))),
    "replica_id": -1,
    "replication_factor": 1,
    "timestamp": -1,
    "validate_only": True,
    **{name: [] for name in EMPTY},
    **dict.fromkeys(("configuration_keys", "owners", "replicas"), None),
}
RESOURCES = [
    *({"resource_type": Type.TOPIC, "resource_name": name} for name in NAMES),
    {"resource_type": Type.GROUP, "resource_name": "open-group"},
    {"resource_type": Type.BROKER, "resource_name": "0"},
]
ANY_ACL = {
    "resource_type_filter": AclResourceType.TOPIC,
    "resource_name_filter": "no such topic",
    "pattern_type_filter": AclPatternType.LITERAL,
    "principal_filter": None,
    "host_filter": None,
    "operation": AclOperation.ANY,
    "permission_type": AclPermission.ANY,
}
NEW_ACL = {
    "resource_type": AclResourceType.TOPIC,
    "resource_name": "<name>",
    "resource_pattern_type": AclPatternType.LITERAL,
    "principal": "User:nobody",
    "host": "*",
    "operation": AclOperation.READ,
    "permission_type": AclPermission.ALLOW,
}
# The APIs of the states of share-partitions (KIP-932)
STATES = (
    *(ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE, ApiKey.WRITE_SHARE_GROUP_STATE),
    *(ApiKey.DELETE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY),
)
# The values of fields that differ from VALUES, for some APIs.
OF_API: Mapping[ApiKey, Values] = {
    ApiKey.FIND_COORDINATOR: {"key": "secret", "coordinator_keys": [*NAMES]},
    ApiKey.INIT_PRODUCER_ID: {"producer_id": -1},
    ApiKey.JOIN_GROUP: {"protocols": [{"name": "range", "metadata": b""}]},
    ApiKey.API_VERSIONS: {"client_software_name": "same-bytes", "client_software_version": "1"},
    ApiKey.SASL_HANDSHAKE: {"mechanism": "PLAIN"},
    ApiKey.SASL_AUTHENTICATE: {"auth_bytes": b"\0stranger\0stranger"},
    ApiKey.CREATE_TOPICS: {"topics": ["open-<name>", "new-<name>", "secret"]},
    ApiKey.DELETE_TOPICS: {"topics": OF_EACH, "topic_names": OF_EACH},
    ApiKey.DESCRIBE_ACLS: ANY_ACL,
    ApiKey.DELETE_ACLS: {"filters": [ANY_ACL]},
    ApiKey.CREATE_ACLS: {"creations": [NEW_ACL]},
    ApiKey.CREATE_PARTITIONS: {"assignments": None},
    ApiKey.DESCRIBE_CONFIGS: {"resources": RESOURCES, "configuration_keys": ["retention.ms"]},
    ApiKey.ALTER_CONFIGS: {"resources": RESOURCES},
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {"resources": RESOURCES},
    ApiKey.ALTER_REPLICA_LOG_DIRS: {"dirs": [{"path": "/nowhere"}]},
    ApiKey.CREATE_DELEGATION_TOKEN: {"owner_principal_type": "User", "owner_principal_name": "nobody"},
    ApiKey.RENEW_DELEGATION_TOKEN: {"hmac": b"x"},
    ApiKey.EXPIRE_DELEGATION_TOKEN: {"hmac": b"x"},
    ApiKey.DESCRIBE_CLIENT_QUOTAS: {"components": []},
    ApiKey.ALTER_CLIENT_QUOTAS: {"entries": [{"entity": [{"entity_type": "user", "entity_name": "nobody"}]}]},
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {"users": [{"name": "nobody"}]},
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {"deletions": [{"name": "nobody", "mechanism": 1}]},
    ApiKey.UPDATE_FEATURES: {"feature_updates": [{"feature": "color", "max_version_level": 1}]},
    ApiKey.OFFSET_FETCH: {"groups": [{"group_id": name} for name in NAMES]},
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: {"groups": [{"group_id": name} for name in NAMES]},
    ApiKey.ADD_PARTITIONS_TO_TXN: {"transactions": [{"transactional_id": name} for name in NAMES]},
    ApiKey.CONSUMER_GROUP_HEARTBEAT: {"member_id": ID, "topic_partitions": [], "subscribed_topic_names": [*NAMES]},
    ApiKey.SHARE_GROUP_HEARTBEAT: {"member_id": ID, "subscribed_topic_names": [*NAMES]},
    ApiKey.SHARE_FETCH: {"member_id": ID, "topics": [*NAMES[:2]]},
    ApiKey.SHARE_ACKNOWLEDGE: {"member_id": ID, "topics": [*NAMES[:2]]},
    **{api: {"topics": [*NAMES[:2]]} for api in STATES},
    ApiKey.PRODUCE: {"transactional_id": None},
    ApiKey.LIST_CONFIG_RESOURCES: {"resource_types": [Type.TOPIC]},
}
# Below version 4, a Metadata request creates the topics that do not exist.
VERSIONS = {ApiKey.METADATA: "4+"}
# Further requests of some APIs: a name, the values of fields, and the versions.
FURTHER: list[tuple[ApiKey, str, Values, str]] = [
    (ApiKey.METADATA, "all topics", {"topics": None}, "1+"),
    (ApiKey.METADATA, "existing topics", {"topics": [*NAMES[:2]]}, "0-3"),
    (ApiKey.METADATA, "new topic", {"topics": ["new-<name>"], "allow_auto_topic_creation": True}, "4+"),
    (ApiKey.METADATA, "ids", {"topics": [{"name": None, "topic_id": id_of(name)} for name in NAMES]}, "12+"),
    (ApiKey.PRODUCE, "transactional id", {"transactional_id": "open"}, "3+"),
    (ApiKey.PRODUCE, "transactional records", {"transactional_id": "open", "records": TRANSACTIONAL}, "3+"),
    (ApiKey.PRODUCE, "transactional records without id", {"records": TRANSACTIONAL}, "3+"),
    (ApiKey.DELETE_TOPICS, "ids", {"topics": [{"topic_id": id_of(name)} for name in OF_EACH]}, "6+"),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, "all topics", {"topics": []}, "0+"),
    (ApiKey.OFFSET_FETCH, "all topics", {"topics": None, "groups": ["open", "secret"]}, "2+"),
    (ApiKey.INIT_PRODUCER_ID, "no transactional id", {"transactional_id": None}, "0+"),
    (ApiKey.FIND_COORDINATOR, "transactional ids", {"key_type": CoordinatorType.TRANSACTION}, "1+"),
    (ApiKey.FIND_COORDINATOR, "share-partitions", {"key_type": CoordinatorType.SHARE}, "6+"),
    (ApiKey.CREATE_DELEGATION_TOKEN, "own token", {"owner_principal_type": "", "owner_principal_name": ""}, "3+"),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, "one topic", {"subscribed_topic_names": ["open"]}, "0+"),
    (ApiKey.SHARE_GROUP_HEARTBEAT, "one topic", {"subscribed_topic_names": ["open"]}, "0+"),
]
# Values that each broker assigns, or that depend on the time.
IGNORED = (
    *("producer_id", "producer_epoch", "transaction_start_time_ms", "client_instance_id", "subscription_id"),
    *("token_id", "hmac", "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms", "auth_bytes"),
    *("issue_timestamp", "expiry_timestamp", "max_timestamp", "last_timestamp"),
    *("total_bytes", "usable_bytes", "log_dir", "size", "last_fetch_timestamp", "last_caught_up_timestamp"),
    *("assignment", "member_epoch", "assignment_epoch", "group_epoch"),
)


def request_of(api: ApiKey, version: int, values: Values = NOTHING) -> Any:
    """Return a request of an API in one version. `values` replaces the usual values of fields."""
    return _struct(request_class(api), version, {**VALUES, **OF_API.get(api, {}), **values})


def _struct(struct: type[Struct], version: int, values: Values, own: Values = NOTHING) -> Any:
    """Return an object with a value for each field that exists in the version. Values in `own` override `values`."""
    found = dict(own)
    for name, field in struct.fields.items():
        if version not in version_range(field.versions):
            found.pop(name, None)
        elif name in own:
            found[name] = _value(own[name], field, version, values)
        elif name in values:
            found[name] = _value(values[name], field, version, values)
        elif name in TOPIC_LISTS:
            found[name] = _value([*NAMES], field, version, values)
        elif field.item is not None and field.item.struct is not None and field.tag is None:
            found[name] = [_struct(field.item.struct, version, values)]
        elif field.item is not None and "partition" in name:
            found[name] = [0]
    return struct(**found)


def _value(value: Any, field: Any, version: int, values: Values) -> Any:
    """Convert the parameter `value` to a value for a field of a request.

    If the field contains a list of structs, the function converts each item of the list `value` to a struct. An item is
    a dict of the struct's fields, or the name of a topic or a group.
    """
    if not isinstance(value, list) or field.item is None or field.item.struct is None:
        return value
    make = partial(_struct, field.item.struct, version, values)
    return [make(each if isinstance(each, dict) else _naming(field.item.struct, version, each)) for each in value]


def _naming(struct: type[Struct], version: int, name: str) -> Values:
    """Return a dict with one field of a struct. This field identifies the topic or the group `name`.

    If the struct has a field for the name in this version, the dict contains this field and the name. Otherwise, the
    dict contains the field `topic_id` and the id of the topic.
    """
    for field in ("name", "topic", "topic_name", "group_id"):
        if field in struct.fields and version in version_range(struct.fields[field].versions):
            return {field: name}
    return {"topic_id": id_of(name)}


def cases_of(api: ApiKey, what: str, values: Values, versions: str) -> Iterator[Case]:
    """Yield one test case for each test user of an API. The test users have different ACLs."""
    topics = {name: Topic() for name in OF_EACH[:2]} if api == ApiKey.DELETE_TOPICS else {}
    message: Callable[[int], Any] = partial(request_of, api, values=values)
    for user in users_of(api):
        name = f"ACLs: {user.situation}" + (f", {what}" if what else "")
        yield case(name, message, versions=versions, topics=topics, ignored=IGNORED, user=user.name, api_key=api)


def _order(api: ApiKey) -> tuple[bool, bool, ApiKey]:
    """Return a sort key: APIs that list everything come first, and the API that deletes groups comes last."""
    first = (ApiKey.LIST_GROUPS, ApiKey.METADATA, ApiKey.DESCRIBE_DELEGATION_TOKEN)
    return api == ApiKey.DELETE_GROUPS, api not in first, api


def described_cases() -> Iterator[Case]:
    """Yield test cases for ConsumerGroupDescribe. A member of the described group subscribes to the topic `secret`."""
    api = ApiKey.CONSUMER_GROUP_DESCRIBE
    join = consumer_join(group_id=GROUP_ID, subscribed_topic_names=["secret"])
    message: Any = partial(request_of, api, values={"group_ids": [GROUP_ID]})
    for user in users_of(api):
        steps = Step(join, connection=SUPER_USER), message
        yield case(f"ACLs: {user.situation}, hidden topic", *steps, ignored=IGNORED, user=user.name, api_key=api)


def share_offsets_cases() -> Iterator[Case]:
    """Yield test cases for DescribeShareGroupOffsets. The group exists, but does not read the requested topics."""
    api = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
    message: Any = partial(request_of, api, values={"groups": [{"group_id": GROUP_ID}]})
    for user in users_of(api):
        steps = Step(share_join(group_id=GROUP_ID), connection=SUPER_USER), message
        yield case(f"ACLs: {user.situation}, existing group", *steps, ignored=IGNORED, user=user.name, api_key=api)


def regex_case() -> Case:
    """Return a case in which a member subscribes to the regular expression `open|secret`.

    The member has permissions only on resources whose names begin with `open`. So it must not get partitions of the
    topic `secret`.
    """
    values = {"subscribed_topic_names": None, "subscribed_topic_regex": "open|secret"}
    join = consumer_join(group_id=GROUP_ID, **values)
    beat = consumer_join(group_id=GROUP_ID, member_epoch=captured("epoch"), **values)
    api = ApiKey.CONSUMER_GROUP_HEARTBEAT
    return case(
        "ACLs: only open, regular expression",
        Step(join, {"epoch": lambda answer: answer.member_epoch}),
        Step(beat, until=lambda answer: bool(answer.assignment and answer.assignment.topic_partitions)),
        versions="1+",
        ignored=("member_epoch",),
        user=next(user.name for user in users_of(api) if user.only_open),
    )


CASES: list[Case] = [
    *(one for each in FURTHER if each[1] == "all topics" for one in cases_of(*each)),
    *(one for api in sorted(HANDLERS, key=_order) for one in cases_of(api, "", NOTHING, VERSIONS.get(api, "0+"))),
    *(one for each in FURTHER if each[1] != "all topics" for one in cases_of(*each)),
    *described_cases(),
    *share_offsets_cases(),
    regex_case(),
]
