"""AlterClientQuotas (49): set and remove quotas (KIP-546)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class AlterClientQuotasRequest(Request, api_key=ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+"):
    """The quotas to set and to remove, for each entity. Version 1 uses the flexible encoding (KIP-482)."""

    class EntryData(Struct):
        class EntityData(Struct):
            """One part of the entity that a quota limits. For example, an entity can consist of a user and a client-id.

            If `entity_name` is null, the quota is a default. For example, with the type `user`, the quota then applies
            to each user who has no quota of their own.
            """

            entity_type: str        = t.string()
            entity_name: str | None = t.string(nullable="0+")

        class OpData(Struct):
            key:    str   = t.string()
            value:  float = t.float64()
            remove: bool  = t.boolean()

        entity: list[EntityData] = t.array(EntityData)
        ops:    list[OpData]     = t.array(OpData)

    entries:       list[EntryData] = t.array(EntryData)
    validate_only: bool            = t.boolean()


class AlterClientQuotasResponse(Response, api_key=ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+"):
    """An error code for each entity in the request. Version 1 uses the flexible encoding (KIP-482)."""

    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: str        = t.string()
            entity_name: str | None = t.string(nullable="0+")

        error_code:    int              = t.int16()
        error_message: str | None       = t.string(nullable="0+")
        entity:        list[EntityData] = t.array(EntityData)

    throttle_time_ms: int             = t.int32()
    entries:          list[EntryData] = t.array(EntryData)
