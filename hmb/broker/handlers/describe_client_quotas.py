"""DescribeClientQuotas: list the quotas that match a filter.

Versions: 0-1; version 1 uses the flexible encoding (KIP-482).
Permissions: DESCRIBE_CONFIGS on the cluster.
Behavior: the request contains a filter, and the response contains the quotas of the entities that match it. A
    filter is a list of components. Each component has an entity type: user, client-id or ip. The component
    matches one name of this type (for example the user alice), the default of this type (an entity without a
    name), or every entity with this type. These rules decide which entities match:
    - *All components.* An entity must match all components of the filter. For example, a filter for the user
      alice matches the entity (user alice) and the entity (user alice, client-id app).
    - *No component.* A filter without components matches all entities, unless the filter is strict.
    - *Strict filters.* A strict filter must have a component for each type of the entity. For example, the
      strict filter for the user alice does not match the entity (user alice, client-id app).
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
