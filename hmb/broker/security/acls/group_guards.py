"""Checks whether a client may list groups, read their offsets, or send heartbeats."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from functools import partial
from typing import Any

from hmb.broker.context import RequestContext
from hmb.broker.security.acls.authorizer import Access
from hmb.broker.security.acls.refusal import merge
from hmb.broker.security.acls.rule_guards import (
    Answer,
    Handle,
    guard_items,
    guard_topics,
    may_see,
    refuse_all,
    when_ready,
)
from hmb.broker.security.acls.rules import GROUP, TOPIC, ItemRule
from hmb.coordinator.streams.description import DescribedStreamsGroup
from hmb.coordinator.streams.heartbeat import topics_of
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.errors import ErrorCode


def offset_fetch(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Require DESCRIBE on each group, and on each topic.

    If a client names a group or a topic that it may not describe, the response contains an error for this group or
    topic. If the client asks for all topics of a group, the response leaves out the forbidden topics.
    """
    if not request.groups:
        if not access.may(Op.DESCRIBE, GROUP, request.group_id):
            return refuse_all(request, context, GROUP)
        if request.topics is None:
            return when_ready(handle(request, context), lambda response: _hidden([response], context, access))
        return guard_topics(Op.DESCRIBE, request, context, access, handle)
    return offsets_of_groups(request, context, access, handle)


def offsets_of_groups(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Answer a request for offsets of groups. A group or topic that the client may not describe gets an error.

    But if the request asks for all topics of a group, the response leaves out the forbidden topics. The request is
    an OffsetFetch request from version 8 on, or a DescribeShareGroupOffsets request.
    """
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


def list_groups(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    response: Any = handle(request, context)
    if not access.may_with_cluster(Op.DESCRIBE):
        response.groups = [group for group in response.groups if access.may(Op.DESCRIBE, GROUP, group.group_id)]
    return response


def group_heartbeat(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Require READ on the group, and DESCRIBE on each topic that the member names.

    A member can also subscribe with a regular expression. It then gets only partitions of topics that it may
    describe. Otherwise, it would learn the names of forbidden topics from its assignment.
    """
    sees = context._replace(may_describe=partial(access.decision, Op.DESCRIBE, TOPIC))
    return _heartbeat(request.subscribed_topic_names or (), request, sees, access, handle)


def streams_group_heartbeat(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Require READ on the group, and DESCRIBE on each topic of the topology.

    The creation of internal topics requires CREATE.
    """

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


def streams_group_describe(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
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
