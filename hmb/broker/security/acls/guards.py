"""Guards: functions that apply the table of authorization to requests before the handlers run.

`guarded` puts a guard before each handler. Most guards follow the table in rules.py. Some APIs have a guard of their
own here, because no rule can describe them. For example, an empty list means all topics in DescribeTopicPartitions, and
one of several permissions is enough for InitProducerId.

A guard also looks at responses. In a fetch session, a response contains topics that the Fetch request does not name. A
list of all topics must not contain topics that the client may not see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Any, TypeAlias

from hmb.broker.context import RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.errors import CloseConnection
from hmb.broker.security.acls.authorizer import Access, Authorizer
from hmb.broker.security.acls.refusal import merge, refuse, split, topic_name
from hmb.broker.security.acls.rules import ERRORS, OPEN, RULES, ApiRule, ItemRule
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import CLUSTER_NAME, AclResourceType, CoordinatorType, ResourceType
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.add_partitions_to_txn import FIRST_VERSION_OF_BROKERS
from hmb.protocol.schema import Response

Answer: TypeAlias = Any  # a response, a Deferred, or None
Handle = Callable[[Any, RequestContext], Answer]
Guard = Callable[[Any, RequestContext, Access, Handle], Answer]
TOPIC, GROUP = AclResourceType.TOPIC, AclResourceType.GROUP
TRANSACTIONAL_ID, CLUSTER = AclResourceType.TRANSACTIONAL_ID, AclResourceType.CLUSTER


def guarded(handlers: Mapping[ApiKey, Handle], authorizer: Authorizer | None) -> Mapping[ApiKey, Handle]:
    """Return handlers that refuse the forbidden parts of requests, and call `handlers` for the other parts.

    Without an authorizer, return `handlers` unchanged.
    """
    if authorizer is None:
        return handlers

    def handler(api: ApiKey, guard: Guard) -> Handle:
        def handle(request: Any, context: RequestContext) -> Answer:
            access = Access(authorizer, context.client.principal, context.client.host)
            return guard(request, context, access, lambda request, context: handlers[api](request, context))

        return handle

    return {api: handler(api, guard_of(api)) for api in handlers}


def guard_of(api: ApiKey) -> Guard:
    """Return the guard of an API. Raises KeyError if the API has none, so that no API is open by mistake."""
    if api in OPEN:
        return _open
    return GUARDS[api] if api in GUARDS else partial(_by_rule, RULES[api])


# -- parts of guards


def _open(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    return handle(request, context)


def _refused(request: Any, context: RequestContext, resource_type: AclResourceType) -> Response:
    code = ERRORS[resource_type]
    return refuse(request, context.version, code, code.message)


def _then(answer: Answer, change: Callable[[Any], Any]) -> Answer:
    """Apply `change` to a response: now, or when the response is ready."""
    if isinstance(answer, Deferred):
        return Deferred(lambda: change(answer.result()))
    return None if answer is None else change(answer)


def _with_refused(
    refused: Any, rest: Any, context: RequestContext, handle: Handle, resource_type: AclResourceType = TOPIC
) -> Answer:
    """Answer the forbidden part of a request with errors, and the rest with the handler."""
    if refused is None:
        return handle(rest, context)
    errors = _refused(refused, context, resource_type)
    if rest is None:
        return errors
    answer = handle(rest, context)
    if answer is None:  # A Produce with acks=0 has no response. As in Kafka, the client notices the closed connection.
        raise CloseConnection("its Produce request with acks=0 contains topics that it must not write")
    return _then(answer, lambda response: merge(response, errors, context.version))


def _by_rule(rule: ApiRule, request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    if rule.cluster is not None and not access.may_with_cluster(rule.cluster):
        return _refused(request, context, CLUSTER)
    if rule.transactional_id is not None and _forbids_transaction(rule.transactional_id, request, access):
        return _refused(request, context, TRANSACTIONAL_ID)
    if rule.group is not None and not access.may(rule.group, GROUP, request.group_id or ""):
        return _refused(request, context, GROUP)
    if rule.topics is not None:
        return _topics(rule.topics, request, context, access, handle)
    if rule.items is not None:
        return _items(rule.items, request, context, access, handle)
    return handle(request, context)


def _forbids_transaction(operation: Op, request: Any, access: Access) -> bool:
    """Return whether a request has a transactional id on which the operation is forbidden."""
    name = request.transactional_id
    return name is not None and not access.may(operation, TRANSACTIONAL_ID, name)


def _topics(operation: Op, request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse the topics of a request on which the operation is forbidden. Let the handler refuse unknown ids."""

    def forbids(name: str, partition: int | None) -> bool:
        return bool(name) and not access.may(operation, TOPIC, name)

    refused, rest = split(request, context, forbids)
    answer = _with_refused(refused, rest, context, handle)
    if request.api_key in (ApiKey.FETCH, ApiKey.SHARE_FETCH) and rest is not None:
        return _then(answer, partial(_without_records, context, access))
    return answer


def _without_records(context: RequestContext, access: Access, response: Any) -> Any:
    """Remove the records of forbidden topics from a Fetch response.

    A fetch session can contain topics that the client was allowed to read only when the session began.
    """
    for topic in response.responses:
        name = topic_name(topic, context)
        if name and not access.may(Op.READ, TOPIC, name):
            for partition in topic.partitions:
                partition.error_code, partition.records = ErrorCode.TOPIC_AUTHORIZATION_FAILED, memoryview(b"")
    return response


def _items(rule: ItemRule, request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse items of a list, for example groups. An item is a name, or a struct with a group id."""
    items = getattr(request, rule.field)
    forbidden = [each for each in items if not access.may(rule.operation, rule.resource_type, _name_of(each))]
    if not forbidden:
        return _visible(handle(request, context), context, access)
    refused, rest = copy(request), copy(request)
    setattr(refused, rule.field, forbidden)
    setattr(rest, rule.field, [each for each in items if each not in forbidden])
    remaining = rest if getattr(rest, rule.field) else None
    return _visible(_with_refused(refused, remaining, context, handle, rule.resource_type), context, access)


def _name_of(item: Any) -> str:
    return item if isinstance(item, str) else str(item.group_id)


def _visible(answer: Answer, context: RequestContext, access: Access) -> Answer:
    """Remove topics that the client may not see from descriptions of transactions and of share groups' offsets."""

    def change(response: Any) -> Any:
        for each in (*getattr(response, "transaction_states", ()), *getattr(response, "groups", ())):
            if "topics" in each.fields:
                each.topics = [it for it in each.topics if _may_see(it, context, access)]
        return response

    return _then(answer, change)


def _may_see(topic: Any, context: RequestContext, access: Access) -> bool:
    name = topic_name(topic, context)
    return not name or access.may(Op.DESCRIBE, TOPIC, name)


# -- guards of single APIs


def _metadata(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse topics that the client may not describe, and new topics that it may not create."""
    is_all = request.topics is None or (context.version == 0 and not request.topics)
    if is_all:
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
        errors: Any = _refused(refused, context, TOPIC)
        for topic in errors.topics:
            if topic.topic_id.int:  # The response must not reveal that this topic exists.
                topic.name, topic.error_code = None, ErrorCode.UNKNOWN_TOPIC_ID
        response.topics += errors.topics
    return _with_operations(response, access)


def _with_operations(response: Any, access: Access) -> Any:
    """Remove the operations that this client may not perform from the authorized operations (KIP-430)."""
    for topic in response.topics:
        if topic.topic_authorized_operations > 0:
            topic.topic_authorized_operations = _bits(topic.topic_authorized_operations, access, TOPIC, topic.name)
    return _with_cluster_operations(response, access)


def _with_cluster_operations(response: Any, access: Access) -> Any:
    if getattr(response, "cluster_authorized_operations", 0) > 0:
        number = response.cluster_authorized_operations
        response.cluster_authorized_operations = sum(
            1 << each for each in Op if number >> each & 1 and access.may_with_cluster(each)
        )
    return response


def _bits(number: int, access: Access, resource_type: AclResourceType, name: str) -> int:
    return sum(1 << each for each in Op if number >> each & 1 and access.may(each, resource_type, name))


def _describe_topic_partitions(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse topics that the client may not describe. An empty list means all topics that the client may describe."""
    if not request.topics:
        request = copy(request)
        item = type(request).fields["topics"].item.struct
        names = [topic.name for topic in context.broker.topics.all() if access.may(Op.DESCRIBE, TOPIC, topic.name)]
        request.topics = [item(name=name) for name in names]
        if not names:
            return refuse(request, context.version, ErrorCode.NONE)
    answer = _topics(Op.DESCRIBE, request, context, access, handle)
    return _then(answer, lambda response: _with_operations(response, access))


def _describe_cluster(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    return _then(handle(request, context), lambda response: _with_cluster_operations(response, access))


def _create_topics(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse topics that the client may not create. The operation CREATE on the cluster permits all topics."""
    if access.may_with_cluster(Op.CREATE):
        return handle(request, context)
    return _topics(Op.CREATE, request, context, access, handle)


def _find_coordinator(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    kinds = {CoordinatorType.GROUP: GROUP, CoordinatorType.TRANSACTION: TRANSACTIONAL_ID}
    kind = kinds.get(request.key_type, CLUSTER)

    def forbids(key: str) -> bool:
        if kind is CLUSTER:
            return not access.may_with_cluster(Op.CLUSTER_ACTION)
        return not access.may(Op.DESCRIBE, kind, key)

    if "coordinator_keys" not in request.fields or context.version < FIRST_VERSION_OF_KEYS:
        return _refused(request, context, kind) if forbids(request.key) else handle(request, context)
    forbidden = [key for key in request.coordinator_keys if forbids(key)]
    if not forbidden:
        return handle(request, context)
    refused, rest = copy(request), copy(request)
    refused.coordinator_keys = forbidden
    rest.coordinator_keys = [key for key in request.coordinator_keys if key not in forbidden]
    return _with_refused(refused, rest if rest.coordinator_keys else None, context, handle, kind)


FIRST_VERSION_OF_KEYS = 4  # the first version of FindCoordinator whose requests contain a list of keys


def _offset_fetch(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse groups and topics that the client may not describe. Remove forbidden topics from a list of all topics."""
    if not request.groups:
        if not access.may(Op.DESCRIBE, GROUP, request.group_id):
            return _refused(request, context, GROUP)
        if request.topics is None:
            return _then(handle(request, context), lambda response: _hidden([response], context, access))
        return _topics(Op.DESCRIBE, request, context, access, handle)
    rule = ItemRule("groups", GROUP, Op.DESCRIBE)
    return _items(rule, request, context, access, partial(_offset_fetch_of_groups, access, handle))


def _offset_fetch_of_groups(access: Access, handle: Handle, request: Any, context: RequestContext) -> Answer:
    everything, named = copy(request), copy(request)
    everything.groups = [group for group in request.groups if group.topics is None]
    named.groups = [group for group in request.groups if group.topics is not None]
    if not everything.groups:
        return _topics(Op.DESCRIBE, named, context, access, handle)
    answer = _then(handle(everything, context), lambda response: _hidden(response.groups, context, access, response))
    if not named.groups:
        return answer
    other = _topics(Op.DESCRIBE, named, context, access, handle)
    return _then(answer, lambda response: _then(other, lambda more: merge(response, more, context.version)))


def _hidden(parts: list[Any], context: RequestContext, access: Access, response: Any = None) -> Any:
    for part in parts:
        part.topics = [topic for topic in part.topics if _may_see(topic, context, access)]
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
            return _refused(request, context, TRANSACTIONAL_ID)
    elif not (access.may_with_cluster(Op.IDEMPOTENT_WRITE) or access.may_with_any_topic(Op.WRITE)):
        return _refused(request, context, CLUSTER)
    return handle(request, context)


def _add_partitions_to_txn(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    if context.version >= FIRST_VERSION_OF_BROKERS:
        if not access.may_with_cluster(Op.CLUSTER_ACTION):
            return _refused(request, context, CLUSTER)
        return handle(request, context)
    if not access.may(Op.WRITE, TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        return _refused(request, context, TRANSACTIONAL_ID)
    return _topics(Op.WRITE, request, context, access, handle)


def _group_heartbeat(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Require READ on the group, and DESCRIBE on each topic that the member names."""
    if not access.may(Op.READ, GROUP, request.group_id):
        return _refused(request, context, GROUP)
    if any(not access.may(Op.DESCRIBE, TOPIC, name) for name in request.subscribed_topic_names or ()):
        response: Any = _refused(request, context, GROUP)
        response.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        response.error_message = ErrorCode.TOPIC_AUTHORIZATION_FAILED.message
        return response
    return handle(request, context)


def _configs(operation: Op, request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse the settings of forbidden topics, groups and brokers, each with the error of its kind of resource."""
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
        errors: Any = refuse(refused, context.version, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ERRORS[kind].message)
        for result in getattr(errors, "results", None) or errors.responses:
            result.error_code = ERRORS[kind]
        answer = errors if answer is None else _then(answer, partial(merge, refused=errors, version=context.version))
    return answer


GUARDS: Mapping[ApiKey, Guard] = {
    ApiKey.METADATA: _metadata,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.LIST_GROUPS: _list_groups,
    ApiKey.LIST_TRANSACTIONS: _list_transactions,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _group_heartbeat,
    ApiKey.SHARE_GROUP_HEARTBEAT: _group_heartbeat,
    ApiKey.DESCRIBE_CONFIGS: partial(_configs, Op.DESCRIBE_CONFIGS),
    ApiKey.ALTER_CONFIGS: partial(_configs, Op.ALTER_CONFIGS),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: partial(_configs, Op.ALTER_CONFIGS),
}
