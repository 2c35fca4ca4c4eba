"""Checks permissions for the APIs that need more than a rule in the table of authorization (rules.py).

The table of authorization cannot express the rules of some APIs. For example, a DescribeTopicPartitions request
without topics asks for all topics. And for an InitProducerId request without a transactional id, a client needs
only one of several permissions. Each of these APIs has a *guard*: a function that checks its requests. The
mapping `GUARDS` at the end of this module contains the guards of all these APIs. This module defines some of the
guards, and imports the others from topic_guards.py, group_guards.py and transaction_guards.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import partial
from typing import Any

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.security.acls import group_guards, topic_guards, transaction_guards
from hmb.broker.security.acls.authorizer import Access
from hmb.broker.security.acls.refusal import merge, refuse
from hmb.broker.security.acls.rule_guards import Answer, Guard, Handle, refuse_all, refuse_part, when_ready
from hmb.broker.security.acls.rules import CLUSTER, GROUP, TOPIC, TRANSACTIONAL_ID
from hmb.broker.security.tokens.delegation import token_owner
from hmb.broker.security.tokens.requesters import check_requester, put_principals
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import CLUSTER_NAME, AclResourceType, CoordinatorType, ResourceType
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.find_coordinator import FIRST_VERSION_OF_LISTS


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


def _configs(operation: Op, request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Handle only the resources (such as topics) on which the operation is permitted.

    Every other resource gets the error of its type, for example TOPIC_AUTHORIZATION_FAILED.
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
    """If the client creates a token for another user, require the permission CREATE_TOKENS on that user."""
    owner = token_owner(request.owner_principal_type, request.owner_principal_name, access.principal)
    if owner == access.principal or access.may(Op.CREATE_TOKENS, AclResourceType.USER, owner):
        return handle(request, context)
    response: Any = refuse(request, context.version, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, "")
    put_principals(response, owner, access.principal, context.version)
    with error_code_in(response):
        check_requester(context)
    return response


def _describe_delegation_token(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Describe only the tokens that the client is allowed to see.

    A client sees a token in any of these cases:

    - The client is the token's owner, its requester or one of its renewers.
    - ACLs permit DESCRIBE on the token.
    - ACLs permit DESCRIBE_TOKENS on the token's owner.
    """

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
    ApiKey.METADATA: topic_guards.metadata,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: topic_guards.describe_topic_partitions,
    ApiKey.DESCRIBE_CLUSTER: topic_guards.describe_cluster,
    ApiKey.CREATE_TOPICS: topic_guards.create_topics,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.OFFSET_FETCH: group_guards.offset_fetch,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: group_guards.offsets_of_groups,
    ApiKey.LIST_GROUPS: group_guards.list_groups,
    ApiKey.LIST_TRANSACTIONS: transaction_guards.list_transactions,
    ApiKey.INIT_PRODUCER_ID: transaction_guards.init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: transaction_guards.add_partitions_to_txn,
    ApiKey.WRITE_TXN_MARKERS: transaction_guards.write_txn_markers,
    ApiKey.DELETE_TOPICS: topic_guards.delete_topics,
    ApiKey.CREATE_DELEGATION_TOKEN: _create_delegation_token,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _describe_delegation_token,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: group_guards.group_heartbeat,
    ApiKey.SHARE_GROUP_HEARTBEAT: group_guards.group_heartbeat,
    ApiKey.STREAMS_GROUP_HEARTBEAT: group_guards.streams_group_heartbeat,
    ApiKey.STREAMS_GROUP_DESCRIBE: group_guards.streams_group_describe,
    ApiKey.DESCRIBE_CONFIGS: partial(_configs, Op.DESCRIBE_CONFIGS),
    ApiKey.ALTER_CONFIGS: partial(_configs, Op.ALTER_CONFIGS),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: partial(_configs, Op.ALTER_CONFIGS),
}
