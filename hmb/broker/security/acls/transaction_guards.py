"""Checks requests of the APIs for transactions and for producer ids."""

from __future__ import annotations

from typing import Any

from hmb.broker.context import RequestContext
from hmb.broker.security.acls.authorizer import Access
from hmb.broker.security.acls.refusal import merge, refuse
from hmb.broker.security.acls.rule_guards import Answer, Handle, refuse_all
from hmb.broker.security.acls.rules import CLUSTER, TOPIC, TRANSACTIONAL_ID
from hmb.broker.security.acls.splitting import split
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.add_partitions_to_txn import FIRST_VERSION_OF_BROKERS


def list_transactions(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    response: Any = handle(request, context)
    response.transaction_states = [
        each
        for each in response.transaction_states
        if access.may(Op.DESCRIBE, TRANSACTIONAL_ID, each.transactional_id)
    ]
    return response


def init_producer_id(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Check the permissions for an InitProducerId request.

    If the request contains a transactional id, require WRITE on this id. Otherwise, require IDEMPOTENT_WRITE on the
    cluster, or WRITE on at least one topic.
    """
    if request.transactional_id is not None:
        if not access.may(Op.WRITE, TRANSACTIONAL_ID, request.transactional_id):
            return refuse_all(request, context, TRANSACTIONAL_ID)
    elif not (access.may_with_cluster(Op.IDEMPOTENT_WRITE) or access.may_with_any_topic(Op.WRITE)):
        return refuse_all(request, context, CLUSTER)
    return handle(request, context)


def add_partitions_to_txn(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    if context.version >= FIRST_VERSION_OF_BROKERS:
        if not access.may_with_cluster(Op.CLUSTER_ACTION):
            return refuse_all(request, context, CLUSTER)
        return handle(request, context)
    # A transaction gets all partitions of the request, or none. If the client lacks WRITE for the transactional id or
    # for one topic, the broker adds no partition.
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


def write_txn_markers(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    """Require one of two permissions on the cluster: CLUSTER_ACTION (for brokers) or ALTER (for administrators)."""
    if access.may_with_cluster(Op.CLUSTER_ACTION) or access.may_with_cluster(Op.ALTER):
        return handle(request, context)
    return refuse_all(request, context, CLUSTER)
