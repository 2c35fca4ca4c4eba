"""A guard checks a request before its handler runs. These guards apply the table of authorization (rules.py).

Other modules, such as topic_guards.py, call `refuse_all` and other functions of this module to refuse requests.

A guard divides a request into a forbidden part and a permitted part. It answers the forbidden part with error codes,
calls the handler for the permitted part, and merges both responses.

A response can contain topics that the request does not name. For example, a Fetch request in a fetch session names only
changed partitions, and a client can request a list of all topics. A guard therefore also removes forbidden topics from
responses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import cache, partial
from typing import Any, TypeAlias

from hmb.broker.context import RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.errors import CloseConnection
from hmb.broker.security.acls.authorizer import Access
from hmb.broker.security.acls.list_refusals import REFUSALS
from hmb.broker.security.acls.refusal import merge, refuse
from hmb.broker.security.acls.rules import CLUSTER, ERRORS, GROUP, RULES, TOPIC, TRANSACTIONAL_ID, ApiRule, ItemRule
from hmb.broker.security.acls.splitting import split, topic_name
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.enums import AclResourceType
from hmb.protocol.errors import ErrorCode
from hmb.protocol.schema import Response

Answer: TypeAlias = Any  # a response, a Deferred, or None
Handle = Callable[[Any, RequestContext], Answer]
Guard = Callable[[Any, RequestContext, Access, Handle], Answer]
# In error responses of these APIs, an object with an error code contains no other objects. For example, a refused group
# in an OffsetFetch response contains no topics.
WITHOUT_ITEMS = {
    *(ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE, ApiKey.LEAVE_GROUP, ApiKey.ADD_PARTITIONS_TO_TXN),
    *(ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE, ApiKey.ALTER_SHARE_GROUP_OFFSETS),
    *(ApiKey.DELETE_SHARE_GROUP_OFFSETS, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ApiKey.DESCRIBE_QUORUM),
}
FETCHES = (ApiKey.FETCH, ApiKey.SHARE_FETCH)
# Produce and Fetch requests are the most frequent. Each value is the name of the request field with the topics. This
# field is never null.
FREQUENT = {ApiKey.PRODUCE: "topic_data", ApiKey.FETCH: "topics"}
HIDDEN_TOPIC = "The group has described topic(s) that the client is not authorized to describe."  # Kafka's text


def refuse_all(request: Any, context: RequestContext, resource_type: AclResourceType) -> Response:
    """Refuse a whole request, with the error for this type of resource, for example TOPIC_AUTHORIZATION_FAILED."""
    code = ERRORS[resource_type]
    if request.api_key in REFUSALS:
        return REFUSALS[request.api_key](request, code)
    response = refuse(request, context.version, code)
    if request.api_key in WITHOUT_ITEMS:
        _clear_below_errors(response)
    if request.api_key == ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS:
        _clear_start_offsets(response)
    return response


def _clear_start_offsets(response: Any) -> None:
    """Set all start offsets to -1 in an error response to DescribeShareGroupOffsets, as Kafka does."""
    for partition in (each for group in response.groups for topic in group.topics for each in topic.partitions):
        partition.start_offset = -1


def _clear_below_errors(struct: Any) -> None:
    """If an object in a response has an error code, empty each list of objects inside this object.

    Lists of numbers stay unchanged. For example, if a group in an OffsetFetch response has an error code, remove
    the group's topics.
    """
    for name, field in struct.fields.items():
        if field.item is not None and field.item.struct is not None:
            if getattr(struct, "error_code", ErrorCode.NONE):
                setattr(struct, name, [])
            for each in getattr(struct, name) or ():
                _clear_below_errors(each)


def when_ready(answer: Answer, change: Callable[[Any], Any]) -> Answer:
    """Return `change(answer)`, or None if `answer` is None.

    If `answer` is not ready, return a `Deferred` that calls `change` later.
    """
    if isinstance(answer, Deferred):
        return Deferred(lambda: change(answer.result()))
    return None if answer is None else change(answer)


def refuse_part(
    refused: Any, rest: Any, context: RequestContext, handle: Handle, resource_type: AclResourceType = TOPIC
) -> Answer:
    """Answer the forbidden part of a request with errors, and let the handler answer the rest."""
    if refused is None:
        return handle(rest, context)
    errors = refuse_all(refused, context, resource_type)
    if rest is None:
        return errors
    answer = handle(rest, context)
    if answer is None:  # A Produce with acks=0 has no response. As in Kafka, the closed connection shows the error.
        raise CloseConnection("the client is not allowed to write to a topic in its Produce request with acks=0")
    return when_ready(answer, lambda response: merge(response, errors, context.version))


def guard_by_rule(rule: ApiRule, request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Check the permissions that `rule` requires. Refuse what is forbidden, and let the handler answer the rest.

    If the client lacks a permission on the cluster, the transactional id or the group, refuse the whole request.
    """
    if rule.cluster is not None and not access.may_with_cluster(rule.cluster):
        return refuse_all(request, context, CLUSTER)
    if rule.transactional_id is not None and _forbids_transaction(rule.transactional_id, request, access):
        return refuse_all(request, context, TRANSACTIONAL_ID)
    if rule.group is not None and not access.may(rule.group, GROUP, request.group_id or ""):
        return refuse_all(request, context, GROUP)
    if rule.topics is not None:
        return guard_topics(rule.topics, request, context, access, handle)
    if rule.items is not None:
        return guard_items(rule.items, request, context, access, handle)
    return handle(request, context)


def guard_produce(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Do the same as `guard_by_rule`, but faster: check the permission to write to a topic only once.

    A producer sends many requests for the same topics. The function therefore stores the topics to which a client
    may write. When an ACL changes, the broker clears this set. For a request with one topic, `guard_by_rule` takes
    3 us of processor time, and this function takes 1.5 us. The broker needs about 100 us for the whole request.
    """
    writable = access.authorizer.writable
    topics = {(access.principal, access.host, topic.name, topic.topic_id) for topic in request.topic_data}
    if request.transactional_id is None and topics <= writable:
        return handle(request, context)
    names = [topic_name(topic, context) for topic in request.topic_data]
    if all(name and access.decision(Op.WRITE, TOPIC, name) for name in names) and access.authorizer.may_remember:
        writable |= topics
    return guard_by_rule(RULES[ApiKey.PRODUCE], request, context, access, handle)


def _forbids_transaction(operation: Op, request: Any, access: Access) -> bool:
    """Return whether a request has a transactional id on which the operation is forbidden."""
    name = request.transactional_id
    return name is not None and not access.may(operation, TRANSACTIONAL_ID, name)


def guard_topics(operation: Op, request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse topics on which the client lacks the permission `operation`. The handler gets the other topics.

    The handler also gets topics whose id the broker does not know, and answers them with an error.
    """
    refused, rest = _split_topics(operation, request, context, access)
    if request.api_key in FETCHES:
        handle = partial(_fetch_permitted, access, handle)
    return refuse_part(refused, rest, context, handle)


def _split_topics(operation: Op, request: Any, context: RequestContext, access: Access) -> tuple[Any, Any]:
    """Split a request into two requests: one with the forbidden topics, and one with the permitted topics.

    The function `split` does this, but it copies the request, which takes time. Produce and Fetch requests are the
    most frequent requests, and usually all their topics are permitted. So for these two APIs, `_split_topics` first
    checks the topics, and calls `split` only if a topic is forbidden.
    """
    if (field := FREQUENT.get(request.api_key)) is not None:
        forbidden: set[str] = set()
        for topic in getattr(request, field):
            name = topic_name(topic, context)
            if name and name not in forbidden and not access.may(operation, TOPIC, name):
                forbidden.add(name)
        return split(request, context, lambda name, partition: name in forbidden) if forbidden else (None, request)

    # `access.may` logs each refusal. With @cache, it logs a forbidden topic once, not once for each partition.
    @cache
    def is_forbidden(name: str) -> bool:
        return bool(name) and not access.may(operation, TOPIC, name)

    return split(request, context, lambda name, partition: is_forbidden(name))


def _fetch_permitted(access: Access, handle: Handle, request: Any, context: RequestContext) -> Answer:
    """Handle a Fetch or ShareFetch request, and remove records and offsets of forbidden topics from the response.

    The response can contain topics that the request does not name, because an earlier request added them to the
    session. Since then, the client can have lost the permission to read such a topic.
    """

    def without_records(response: Any) -> Any:
        for topic in response.responses:
            name = topic_name(topic, context)
            if name and not access.may(Op.READ, TOPIC, name):
                topic.partitions = [_refused_partition(partition) for partition in topic.partitions]
        return response

    return when_ready(handle(request, context), without_records)


def _refused_partition(partition: Any) -> Any:
    """Return a partition of a Fetch response that contains only its number and the error."""
    refused = type(partition)(
        partition_index=partition.partition_index,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        records=memoryview(b""),
    )
    if "high_watermark" in refused.fields:  # ShareFetch has no such field.
        refused.high_watermark = -1
    return refused


def guard_items(rule: ItemRule, request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse the forbidden items in a list of the request, and pass the permitted items to the handler.

    For example, a request contains the groups "a" and "b", and the client has the permission only for "a". The
    response then contains the handler's answer for "a", and an error for "b".

    An item of the list is a name, or a struct with a group id.
    """
    forbidden, permitted = list[Any](), list[Any]()
    for each in getattr(request, rule.field):
        is_permitted = access.may(rule.operation, rule.resource_type, _name_of(each))
        (permitted if is_permitted else forbidden).append(each)
    if not forbidden:
        return _visible(handle(request, context), context, access)
    refused, rest = copy(request), copy(request)
    setattr(refused, rule.field, forbidden)
    setattr(rest, rule.field, permitted)
    remaining = rest if permitted else None
    return _visible(refuse_part(refused, remaining, context, handle, rule.resource_type), context, access)


def _name_of(item: Any) -> str:
    return item if isinstance(item, str) else str(item.group_id)


def _visible(answer: Answer, context: RequestContext, access: Access) -> Answer:
    """Remove forbidden information from a response that describes transactions or groups.

    - From the description of a transaction, remove the topics that the client must not see.
    - From the description of a group, remove the operations that the client must not perform.
    - If the assignment of a group member contains a topic that the client must not see, replace the group's whole
      description by an error.
    """

    def change(response: Any) -> Any:
        for each in getattr(response, "transaction_states", ()):
            each.topics = [topic for topic in each.topics if may_see(topic, context, access)]
        if "groups" in response.fields:
            response.groups = [_visible_group(group, context, access) for group in response.groups]
        return response

    return when_ready(answer, change)


def _visible_group(group: Any, context: RequestContext, access: Access) -> Any:
    """Return the part of a group's description that the client may see.

    The result contains only the operations that the client may perform on the group.

    A member's assignment can contain a topic that the client may not describe. The result then contains only the
    group's id and an error.
    """
    if getattr(group, "authorized_operations", 0) > 0:
        group.authorized_operations = permitted_operations(group.authorized_operations, access, GROUP, group.group_id)
    if "members" in group.fields and not all(may_see(topic, context, access) for topic in _assigned_topics(group)):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return type(group)(group_id=group.group_id, error_code=code, error_message=HIDDEN_TOPIC)
    return group


def _assigned_topics(group: Any) -> Iterator[Any]:
    """Yield the topics that are assigned to the members of a group (KIP-848, KIP-932).

    `group` is the description of a group in a response. For a classic group, yield nothing, because its assignments
    are bytes that only clients can decode. For a streams group, also yield nothing, because its assignments contain
    tasks, not topics.
    """
    for member in group.members:
        for name in {"assignment", "target_assignment"} & member.fields.keys():
            yield from getattr(getattr(member, name), "topic_partitions", ())


def permitted_operations(number: int, access: Access, resource_type: AclResourceType, name: str) -> int:
    """Set the bits of all forbidden operations in `number` to 0, and return the result.

    Each bit of `number` stands for one operation. For example, bit 3 stands for READ. If the client has no
    permission to read, bit 3 of the result is 0.
    """
    return sum(1 << each for each in Op if number >> each & 1 and access.may(each, resource_type, name))


def may_see(topic: Any, context: RequestContext, access: Access) -> bool:
    """Return whether the client has the permission DESCRIBE on a topic in a response.

    If the response contains a topic id, the function finds the topic's name, because ACLs contain names. If no
    topic has this id, the result is True.
    """
    name = topic_name(topic, context)
    return not name or access.may(Op.DESCRIBE, TOPIC, name)
