"""DescribeClientQuotas: list the quotas that match a filter.

Versions: 0-1; version 1 uses the flexible encoding (KIP-482).
Permissions: DESCRIBE_CONFIGS on the cluster.
Behavior: the filter has a component for each entity type: user, client-id or ip. An entity matches if it matches all
    components. A filter without components matches all entities. A strict filter matches only entities whose types are
    all in the filter. For example, a strict filter for users does not match an entity that consists of a user and a
    client id.
Version notes: none. Both versions have the same fields.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.security.quotas.alterations import described
from hmb.broker.security.store import sorted_parts
from hmb.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

Entry = DescribeClientQuotasResponse.EntryData


def handle(request: DescribeClientQuotasRequest, context: RequestContext) -> DescribeClientQuotasResponse:
    response = DescribeClientQuotasResponse(entries=None)
    with error_code_in(response):
        found = described(context.broker.security.state.quotas, request.components, is_strict=request.strict)
        response.entries = [
            Entry(
                entity=[Entry.EntityData(entity_type=type, entity_name=name) for type, name in sorted_parts(entity)],
                values=[Entry.ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in found
        ]
    return response
