"""Checks the requests of the APIs that no rule of the table (rules.py) can describe.

These APIs have conditions that the table cannot express. For example, an empty list of topics means all topics in
DescribeTopicPartitions, and one of several permissions is enough for InitProducerId. `GUARDS` at the end of the module
lists the APIs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from functools import partial
from typing import Any

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.security.acls.authorizer import Access
from hmb.broker.security.acls.refusal import merge, refuse, split, topic_name
from hmb.broker.security.acls.rule_guards import (
    CLUSTER,
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
    Answer,
    Guard,
    Handle,
    guard_items,
    guard_topics,
    may_see,
    permitted_operations,
    refuse_all,
    refuse_part,
    when_ready,
)
from hmb.broker.security.acls.rules import ItemRule
from hmb.broker.security.tokens.delegation import token_owner
from hmb.broker.security.tokens.requesters import check_requester, put_principals
from hmb.coordinator.streams.description import DescribedStreamsGroup
from hmb.coordinator.streams.heartbeat import topics_of
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import CLUSTER_NAME, AclResourceType, CoordinatorType, ResourceType
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.add_partitions_to_txn import FIRST_VERSION_OF_BROKERS
from hmb.protocol.messages.find_coordinator import FIRST_VERSION_OF_LISTS

NO_OPERATIONS = -(2**31)  # the number in a response that contains no authorized operations


def _metadata(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse topics that the client may not describe, and new topics that it may not create."""
    if request.has_ids_too_early(context.version):
        return handle(request, context)  # The handler refuses the whole request, and describes no topic.
    if request.is_for_all_topics(context.version):
        response: Any = handle(request, context)
        response.topics = [topic for topic in response.topics if access.may(Op.DESCRIBE, TOPIC, topic.name)]
        return _with_operations(response, access)
    topics = context.broker.topics
    creates = request.allow_auto_topic_creation and context.broker.config.auto_create_topics

    def forbids(name: str, partition: int | None) -> bool:
        if not name or access.may(Op.DESCRIBE, TOPIC, name):
            is_new = bool(name) and creates and name not in topics
            return is_new and not (access.may_with_cluster(Op.CREATE) or access.may(Op.CREATE, TOPIC, name))
        return True

    refused, rest = split(request, context, forbids)
    if rest is None:
        rest = copy(request)
        rest.topics = []
    response = handle(rest, context)
    if not rest.topics:
        response.topics = []  # In version 0, an empty list means all topics to the handler.
    if refused is not None:
        errors: Any = refuse_all(refused, context, TOPIC)
        for topic in errors.topics:
            if topic.topic_id.int:  # The response must not reveal that this topic exists.
                topic.name, topic.error_code = None, ErrorCode.UNKNOWN_TOPIC_ID
        response.topics += errors.topics
    return _with_operations(response, access)


def _with_operations(response: Any, access: Access) -> Any:
    """Remove from the response the authorized operations that this client may not perform (KIP-430)."""
    for topic in response.topics:
        if topic.name is None:  # No topic has the requested id, or the client may not describe this topic.
            topic.topic_authorized_operations = NO_OPERATIONS
        elif topic.topic_authorized_operations > 0:
            number = topic.topic_authorized_operations
            topic.topic_authorized_operations = permitted_operations(number, access, TOPIC, topic.name)
    return _with_cluster_operations(response, access)


def _with_cluster_operations(response: Any, access: Access) -> Any:
    number = getattr(response, "cluster_authorized_operations", 0)
    if number > 0:  # As in Kafka, a client that may not describe the cluster sees no operations.
        may_see_operations = access.may_with_cluster(Op.DESCRIBE)
        visible = permitted_operations(number, access, CLUSTER, CLUSTER_NAME) if may_see_operations else 0
        response.cluster_authorized_operations = visible
    return response


def _describe_topic_partitions(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse topics that the client may not describe. An empty list means all topics that the client may describe."""
    if not request.topics:
        request = copy(request)
        item = type(request).fields["topics"].item.struct
        names = [topic.name for topic in context.broker.topics.all() if access.may(Op.DESCRIBE, TOPIC, topic.name)]
        request.topics = [item(name=name) for name in names]
        if not names:
            return refuse(request, context.version, ErrorCode.NONE)
    answer = guard_topics(Op.DESCRIBE, request, context, access, handle)
    return when_ready(answer, lambda response: _with_operations(response, access))


def _describe_cluster(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    return when_ready(handle(request, context), lambda response: _with_cluster_operations(response, access))


def _create_topics(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse topics that the client may not create. The operation CREATE on the cluster permits all topics.

    A response contains the settings of a new topic (KIP-525) only if the client has DESCRIBE_CONFIGS on the topic.
    """
    if access.may_with_cluster(Op.CREATE):
        response: Any = handle(request, context)
    else:
        response = guard_topics(Op.CREATE, request, context, access, handle)
    for topic in response.topics:
        if not topic.error_code and not access.may(Op.DESCRIBE_CONFIGS, TOPIC, topic.name):
            topic.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            topic.num_partitions, topic.replication_factor, topic.configs = -1, -1, []
    return response


def _delete_topics(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse topics that the client may not delete. For a topic id, hide the name if the client may not describe it.

    If a topic does not exist, the error says so only to a client that may describe the topic.
    """

    def forbids(name: str, partition: int | None) -> bool:
        is_known_missing = name not in context.broker.topics and access.may(Op.DESCRIBE, TOPIC, name)
        return bool(name) and not is_known_missing and not access.may(Op.DELETE, TOPIC, name)

    def hide(response: Any) -> Any:
        for topic in response.responses:
            if not topic.name and topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                topic.name = topic_name(topic, context) if may_see(topic, context, access) else None
        return response

    refused, rest = split(request, context, forbids)
    return when_ready(refuse_part(refused, rest, context, handle), hide)


def _find_coordinator(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    kinds = {CoordinatorType.GROUP: GROUP, CoordinatorType.TRANSACTION: TRANSACTIONAL_ID}
    kind = kinds.get(request.key_type, CLUSTER)

    def forbids(key: str) -> bool:
        if kind is CLUSTER:
            return not access.may_with_cluster(Op.CLUSTER_ACTION)
        return not access.may(Op.DESCRIBE, kind, key)

    if context.version < FIRST_VERSION_OF_LISTS:
        return refuse_all(request, context, kind) if forbids(request.key) else handle(request, context)
    refused, rest = copy(request), copy(request)
    refused.coordinator_keys, rest.coordinator_keys = list[str](), list[str]()
    for key in request.coordinator_keys:
        (refused if forbids(key) else rest).coordinator_keys.append(key)
    if not refused.coordinator_keys:
        return handle(request, context)
    return refuse_part(refused, rest if rest.coordinator_keys else None, context, handle, kind)


def _offset_fetch(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse groups and topics that the client may not describe.

    If the client requests all topics, leave out the forbidden topics.
    """
    if not request.groups:
        if not access.may(Op.DESCRIBE, GROUP, request.group_id):
            return refuse_all(request, context, GROUP)
        if request.topics is None:
            return when_ready(handle(request, context), lambda response: _hidden([response], context, access))
        return guard_topics(Op.DESCRIBE, request, context, access, handle)
    return _offsets_of_groups(request, context, access, handle)


def _offsets_of_groups(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse groups, and topics of these groups, that the client may not describe."""
    rule = ItemRule("groups", GROUP, Op.DESCRIBE)
    return guard_items(rule, request, context, access, partial(_offsets_of_permitted_groups, access, handle))


def _offsets_of_permitted_groups(access: Access, handle: Handle, request: Any, context: RequestContext) -> Answer:
    everything, named = copy(request), copy(request)
    everything.groups = [group for group in request.groups if group.topics is None]
    named.groups = [group for group in request.groups if group.topics is not None]
    if not everything.groups:
        return guard_topics(Op.DESCRIBE, named, context, access, handle)
    answer = handle(everything, context)
    answer = when_ready(answer, lambda response: _hidden(response.groups, context, access, response))
    if not named.groups:
        return answer
    other = guard_topics(Op.DESCRIBE, named, context, access, handle)
    return when_ready(answer, lambda response: when_ready(other, lambda more: merge(response, more, context.version)))


def _hidden(parts: list[Any], context: RequestContext, access: Access, response: Any = None) -> Any:
    for part in parts:
        part.topics = [topic for topic in part.topics if may_see(topic, context, access)]
    return response if response is not None else parts[0]


def _list_groups(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    response: Any = handle(request, context)
    if not access.may_with_cluster(Op.DESCRIBE):
        response.groups = [group for group in response.groups if access.may(Op.DESCRIBE, GROUP, group.group_id)]
    return response


def _list_transactions(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    response: Any = handle(request, context)
    response.transaction_states = [
        each
        for each in response.transaction_states
        if access.may(Op.DESCRIBE, TRANSACTIONAL_ID, each.transactional_id)
    ]
    return response


def _init_producer_id(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Require WRITE on the transactional id. Without an id, require IDEMPOTENT_WRITE, or WRITE on any topic."""
    if request.transactional_id is not None:
        if not access.may(Op.WRITE, TRANSACTIONAL_ID, request.transactional_id):
            return refuse_all(request, context, TRANSACTIONAL_ID)
    elif not (access.may_with_cluster(Op.IDEMPOTENT_WRITE) or access.may_with_any_topic(Op.WRITE)):
        return refuse_all(request, context, CLUSTER)
    return handle(request, context)


def _add_partitions_to_txn(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    if context.version >= FIRST_VERSION_OF_BROKERS:
        if not access.may_with_cluster(Op.CLUSTER_ACTION):
            return refuse_all(request, context, CLUSTER)
        return handle(request, context)
    # The transaction gets either all partitions of the request or none. So no partition is added if the client may not
    # write to the transactional id, or to one of the topics.
    if not access.may(Op.WRITE, TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        return refuse_all(request, context, TRANSACTIONAL_ID)
    refused, rest = split(request, context, lambda name, partition: not access.may(Op.WRITE, TOPIC, name))
    if refused is None:
        return handle(request, context)
    errors = refuse_all(refused, context, TOPIC)
    if rest is None:  # All topics are forbidden.
        return errors
    not_attempted = refuse(rest, context.version, ErrorCode.OPERATION_NOT_ATTEMPTED, "")
    return merge(not_attempted, errors, context.version)


def _write_txn_markers(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Require CLUSTER_ACTION, the permission of brokers, or ALTER, the permission of administrators."""
    if access.may_with_cluster(Op.CLUSTER_ACTION) or access.may_with_cluster(Op.ALTER):
        return handle(request, context)
    return refuse_all(request, context, CLUSTER)


def _group_heartbeat(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Require READ on the group, and DESCRIBE on each topic that the member names.

    A regular expression matches only topics that the member may describe. Without this rule, a member could learn from
    its assignment which forbidden topics exist.
    """
    sees = context._replace(may_describe=partial(access.decision, Op.DESCRIBE, TOPIC))
    return _heartbeat(request.subscribed_topic_names or (), request, sees, access, handle)


def _streams_group_heartbeat(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Require READ on the group, and DESCRIBE on each topic of the topology. A new topic requires CREATE."""

    def may_create(name: str) -> bool:
        return access.may_with_cluster(Op.CREATE) or access.may(Op.CREATE, TOPIC, name)

    names = () if request.topology is None else topics_of(request.topology)
    return _heartbeat(names, request, context._replace(may_create=may_create), access, handle)


def _heartbeat(
    topics: Iterable[str], request: Any, context: RequestContext, access: Access, handle: Handle
) -> Answer:
    response: Any = refuse_all(request, context, GROUP)
    response.member_id = type(response).fields["member_id"].default_value()
    if not access.may(Op.READ, GROUP, request.group_id):
        return response
    if any(not access.may(Op.DESCRIBE, TOPIC, name) for name in topics):
        response.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        response.error_message = ErrorCode.TOPIC_AUTHORIZATION_FAILED.message
        return response
    return handle(request, context)


def _streams_group_describe(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Require DESCRIBE on each group, and on each topic of its topology."""

    def check(response: Any) -> Any:
        response.groups = [each if _may_see_topology(each, access) else _hidden_group(each) for each in response.groups]
        return response

    return when_ready(guard_items(ItemRule("group_ids", GROUP, Op.DESCRIBE), request, context, access, handle), check)


def _may_see_topology(group: DescribedStreamsGroup, access: Access) -> bool:
    return group.topology is None or all(access.may(Op.DESCRIBE, TOPIC, name) for name in topics_of(group.topology))


def _hidden_group(group: DescribedStreamsGroup) -> DescribedStreamsGroup:
    text = "The described group uses topics that the client is not authorized to describe."
    return DescribedStreamsGroup(
        group_id=group.group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=text
    )


def _configs(operation: Op, request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse the resources (such as topics) on which the operation is forbidden.

    Each type of resource has its own error, for example TOPIC_AUTHORIZATION_FAILED.
    """
    kinds = {ResourceType.TOPIC: TOPIC, ResourceType.GROUP: GROUP}
    by_kind: dict[AclResourceType, list[Any]] = {}
    rest = copy(request)
    rest.resources = []
    for each in request.resources:
        kind = kinds.get(each.resource_type, CLUSTER)
        name = CLUSTER_NAME if kind is CLUSTER else each.resource_name
        allowed = access.may(operation, kind, name)
        (rest.resources if allowed else by_kind.setdefault(kind, [])).append(each)
    answer = handle(rest, context) if rest.resources or not by_kind else None
    for kind, resources in by_kind.items():
        refused = copy(request)
        refused.resources = resources
        errors = refuse_all(refused, context, kind)
        with_errors = partial(merge, refused=errors, version=context.version)
        answer = errors if answer is None else when_ready(answer, with_errors)
    return answer


def _create_delegation_token(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """If the new token belongs to another user than the requester, require CREATE_TOKENS on this user."""
    owner = token_owner(request.owner_principal_type, request.owner_principal_name, access.principal)
    if owner == access.principal or access.may(Op.CREATE_TOKENS, AclResourceType.USER, owner):
        return handle(request, context)
    response: Any = refuse(request, context.version, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, "")
    put_principals(response, owner, access.principal, context.version)
    with error_code_in(response):
        check_requester(context)
    return response


def _describe_delegation_token(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Remove the tokens of others, unless ACLs permit DESCRIBE on the token or DESCRIBE_TOKENS on its owner."""

    def may_see_token(token: Any) -> bool:
        parties = [(it.principal_type, it.principal_name) for it in (token, *token.renewers)]
        requester = (token.token_requester_principal_type, token.token_requester_principal_name)
        return (
            tuple(access.principal.split(":", 1)) in (*parties, requester)
            or access.may(Op.DESCRIBE, AclResourceType.DELEGATION_TOKEN, token.token_id)
            or access.may(Op.DESCRIBE_TOKENS, AclResourceType.USER, ":".join(parties[0]))
        )

    response: Any = handle(request, context)
    response.tokens = [token for token in response.tokens if may_see_token(token)]
    return response


GUARDS: Mapping[ApiKey, Guard] = {
    ApiKey.METADATA: _metadata,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _offsets_of_groups,
    ApiKey.LIST_GROUPS: _list_groups,
    ApiKey.LIST_TRANSACTIONS: _list_transactions,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    ApiKey.WRITE_TXN_MARKERS: _write_txn_markers,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.CREATE_DELEGATION_TOKEN: _create_delegation_token,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _describe_delegation_token,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _group_heartbeat,
    ApiKey.SHARE_GROUP_HEARTBEAT: _group_heartbeat,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _streams_group_heartbeat,
    ApiKey.STREAMS_GROUP_DESCRIBE: _streams_group_describe,
    ApiKey.DESCRIBE_CONFIGS: partial(_configs, Op.DESCRIBE_CONFIGS),
    ApiKey.ALTER_CONFIGS: partial(_configs, Op.ALTER_CONFIGS),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: partial(_configs, Op.ALTER_CONFIGS),
}
