"""Checks requests that list, create or delete topics, or describe the cluster."""

from __future__ import annotations

from copy import copy
from typing import Any

from hmb.broker.context import RequestContext
from hmb.broker.security.acls.authorizer import Access
from hmb.broker.security.acls.refusal import refuse
from hmb.broker.security.acls.rule_guards import (
    Answer,
    Handle,
    guard_topics,
    may_see,
    permitted_operations,
    refuse_all,
    refuse_part,
    when_ready,
)
from hmb.broker.security.acls.rules import CLUSTER, TOPIC
from hmb.broker.security.acls.splitting import split, topic_name
from hmb.protocol.enums import CLUSTER_NAME
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.errors import ErrorCode


def metadata(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse topics that the client has no permission to describe.

    Also refuse new topics that the client has no permission to create.
    """
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
        # If all requested topics are forbidden, `rest` has an empty list of topics. In version 0, an empty list means
        # all topics, so the handler has described all topics, even the forbidden ones.
        response.topics = []
    if refused is not None:
        errors: Any = refuse_all(refused, context, TOPIC)
        for topic in errors.topics:
            if topic.topic_id.int:  # The response must not reveal that this topic exists.
                topic.name, topic.error_code = None, ErrorCode.UNKNOWN_TOPIC_ID
        response.topics += errors.topics
    return _with_operations(response, access)


def _with_operations(response: Any, access: Access) -> Any:
    """Remove from the response the operations that the client has no permission to perform (KIP-430)."""
    for topic in response.topics:
        if topic.name is None:  # No topic has the requested id, or the client has no permission to describe the topic.
            topic.topic_authorized_operations = topic.fields["topic_authorized_operations"].default
        elif topic.topic_authorized_operations > 0:
            number = topic.topic_authorized_operations
            topic.topic_authorized_operations = permitted_operations(number, access, TOPIC, topic.name)
    return _with_cluster_operations(response, access)


def _with_cluster_operations(response: Any, access: Access) -> Any:
    number = getattr(response, "cluster_authorized_operations", 0)
    if number > 0:  # The client has asked for the operations that it is allowed to perform on the cluster.
        # As in Kafka, a client without the permission DESCRIBE on the cluster gets 0: an empty set of operations.
        may_see_operations = access.may_with_cluster(Op.DESCRIBE)
        visible = permitted_operations(number, access, CLUSTER, CLUSTER_NAME) if may_see_operations else 0
        response.cluster_authorized_operations = visible
    return response


def describe_topic_partitions(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse topics that the client has no permission to describe.

    An empty list in the request means all topics that the client may describe.
    """
    if not request.topics:
        request = copy(request)
        item = type(request).fields["topics"].item.struct
        names = [topic.name for topic in context.broker.topics.all() if access.may(Op.DESCRIBE, TOPIC, topic.name)]
        request.topics = [item(name=name) for name in names]
        if not names:
            return refuse(request, context.version, ErrorCode.NONE)
    answer = guard_topics(Op.DESCRIBE, request, context, access, handle)
    return when_ready(answer, lambda response: _with_operations(response, access))


def describe_cluster(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    return when_ready(handle(request, context), lambda response: _with_cluster_operations(response, access))


def create_topics(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse topics that the client has no permission to create.

    A client with the permission CREATE on the cluster may create every topic. Other clients must have the
    permission CREATE on each topic that they want to create.

    The response contains the settings of a new topic (KIP-525) only if the client has the permission
    DESCRIBE_CONFIGS on this topic.
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


def delete_topics(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Refuse topics that the client has no permission to delete.

    A client without the permission DESCRIBE on a topic must not learn whether a topic with this name exists:

    - If the client requests a topic by its id, the error does not contain the topic's name.
    - If the client requests a topic by its name, the error is the same for an existing topic and for a missing
      topic.
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
