"""Counts the partitions that clients create and delete, for the quota controller_mutation_rate (KIP-599)."""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.security.quotas.limits import QuotaClient
from hmb.protocol.errors import ErrorCode, KafkaError


def charge_partitions(context: RequestContext, partitions: int, first_version_of_throttling: int) -> None:
    """Count the partitions of one topic that a client creates or deletes.

    Raises THROTTLING_QUOTA_EXCEEDED if the client has used up its quota. API versions before
    `first_version_of_throttling` do not have this error. If a request uses such an old version, the broker accepts
    the request, and then throttles the client.
    """
    quotas, client = context.broker.quotas, QuotaClient.of(context.client.principal, context.header.client_id)
    is_strict = context.version >= first_version_of_throttling
    if is_strict and (wait := quotas.wait_for_tokens(client)):
        context.client.mute(wait)
        raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    quotas.take_tokens(client, partitions)
    if not is_strict:
        context.client.mute(quotas.wait_for_tokens(client))
