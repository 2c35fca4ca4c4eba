"""DescribeClientQuotas (48): list the quotas that match a filter (KIP-546)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeClientQuotasRequest(Request, api_key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+"):
    """A request to list the quotas that match a filter.

    The filter is a list of `components`. Each component is a condition for one type of entity: user, client-id or
    ip. Version 1 uses the flexible encoding (KIP-482).
    """

    class ComponentData(Struct):
        """A condition that listed quotas must meet, such as user = "alice". `match_type` is a `QuotaMatch`."""

        entity_type: str        = t.string()
        match_type:  int        = t.int8()
        match:       str | None = t.string(nullable="0+")

    components: list[ComponentData] = t.array(ComponentData)
    strict:     bool                = t.boolean()


class DescribeClientQuotasResponse(Response, api_key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+"):
    """The quotas of each entity that the filter matches. Version 1 uses the flexible encoding (KIP-482)."""

    class EntryData(Struct):
        class EntityData(Struct):
            """One part of an entity that has a quota. For example, an entity can consist of a user and a client-id.

            If `entity_name` is null, the quota is a default. For example, with the type `user`, the quota then applies
            to each user who has no quota of their own.
            """

            entity_type: str        = t.string()
            entity_name: str | None = t.string(nullable="0+")

        class ValueData(Struct):
            key:   str   = t.string()
            value: float = t.float64()

        entity: list[EntityData] = t.array(EntityData)
        values: list[ValueData]  = t.array(ValueData)

    throttle_time_ms: int                    = t.int32()
    error_code:       int                    = t.int16()
    error_message:    str | None             = t.string(nullable="0+")
    entries:          list[EntryData] | None = t.array(EntryData, nullable="0+")
