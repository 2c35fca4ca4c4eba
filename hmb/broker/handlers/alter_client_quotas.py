"""AlterClientQuotas: set and remove the quotas of users, client ids and IP addresses.

Versions: 0-1; version 1 uses the flexible encoding (KIP-482).
Permissions: ALTER_CONFIGS on the cluster.
Behavior: a quota belongs to an entity, such as a user. The broker answers by these rules:
    - *Time.* The broker responds after the quotas are on disk. A new quota applies to the next request of a
      client.
    - *Hosts.* A request can contain a host name instead of an IP address. The broker looks up the addresses of
      the host before it responds, and again when the broker starts.
    - *Errors.* Each entity has its own error code. An entity gets INVALID_REQUEST (42) if the request names the
      entity twice, or sets one of its quotas twice.
Version notes: none. Both versions have the same fields.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from collections import Counter

from hmb.broker.context import RequestContext
from hmb.broker.errors import put_error
from hmb.broker.security.quotas.alterations import Changes, alter
from hmb.broker.security.store import QuotaEntity, sorted_parts
from hmb.protocol.enums import QuotaEntityType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

Wanted = AlterClientQuotasRequest.EntryData
Entry = AlterClientQuotasResponse.EntryData


def handle(request: AlterClientQuotasRequest, context: RequestContext) -> AlterClientQuotasResponse:
    errors: dict[QuotaEntity, KafkaError] = {}
    changes: dict[QuotaEntity, Changes] = {}
    entities = [_entity(wanted) for wanted in request.entries]
    for entity, wanted in zip(entities, request.entries, strict=True):
        try:
            if entity in changes:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Ignoring duplicate entity")
            changes[entity] = _changes(wanted)
        except KafkaError as error:
            errors[entity] = error
    valid = {entity: change for entity, change in changes.items() if entity not in errors}
    try:
        errors |= alter(context.broker.security, valid, validate_only=request.validate_only)
    except OSError as error:
        failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        errors |= {entity: failure for entity in entities if entity not in errors}
    if any(QuotaEntityType.IP in dict(entity) for entity in valid):
        context.broker.quotas.resolve_hosts()
    response = AlterClientQuotasResponse()
    for entity in dict.fromkeys(entities):
        parts = [Entry.EntityData(entity_type=type, entity_name=name) for type, name in sorted_parts(entity)]
        response.entries.append(Entry(entity=parts, error_message=None))
        put_error(response.entries[-1], errors.get(entity))
    return response


def _entity(wanted: Wanted) -> QuotaEntity:
    return frozenset({part.entity_type: part.entity_name for part in wanted.entity}.items())


def _changes(wanted: Wanted) -> Changes:
    """Return the new values that the request contains for one entity. Raises INVALID_REQUEST."""
    for key, times in Counter(operation.key for operation in wanted.ops).items():
        if times > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate quota key {key}, the quota is not updated")
    return {operation.key: None if operation.remove else operation.value for operation in wanted.ops}
