"""Contains the methods of `Admin` that set, list and remove quotas (KIP-546).

A quota limits how much an *entity* may use. An entity is a user, a client id, both together, or an IP
address. The empty name "" stands for all users, client ids or addresses without a quota of their own. The next
example is an entity for the user alice. Its quota applies separately to each client id for which alice has no
other quota:
    ClientQuotaEntity(user="alice", client_id="")

Each quota has a key, such as `producer_byte_rate`. The enum `QuotaKey` contains all keys. The methods need Kafka 2.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hmb.client.admin.brokers import Brokers
from hmb.client.errors import response_error
from hmb.protocol.enums import QuotaEntityType, QuotaMatch
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from hmb.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest

Alteration = AlterClientQuotasRequest.EntryData
Component = DescribeClientQuotasRequest.ComponentData


class ClientQuotaEntity(NamedTuple):
    """The clients to which a quota applies: a user, a client id, both together, or an IP address.

    A field that is None is not a part of the entity. For example, `ClientQuotaEntity(user="alice")` describes all
    clients of the user alice. The empty string "" means the default entity, for example all users without a
    quota of their own.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    @classmethod
    def of(cls, parts: Iterable[Any]) -> ClientQuotaEntity:
        """Convert an entity in a broker's response to a `ClientQuotaEntity`.

        Each element of `parts` contains a type and a name, for example the type "user" and the name "alice".

        In a response, the name null means the default entity. The method replaces null by the empty string "".
        """
        names = {part.entity_type: part.entity_name or "" for part in parts}
        return cls(*(names.get(type) for type in QuotaEntityType))

    @property
    def names(self) -> dict[QuotaEntityType, str]:
        """The names that are not None, for example `{QuotaEntityType.USER: "alice"}`."""
        return {type: name for type, name in zip(QuotaEntityType, self, strict=True) if name is not None}


ALL_QUOTAS = ClientQuotaEntity()  # as a filter: matches every entity


def describe_quotas(
    brokers: Brokers, wanted: ClientQuotaEntity = ALL_QUOTAS
) -> dict[ClientQuotaEntity, dict[str, float]]:
    """Return the quotas of all entities that match `wanted`: `{entity: {key: value}}`. Needs Kafka 2.6.

    An *entity* describes the clients to which a quota applies. An entity is a user, a client id, a user together
    with a client id, or an IP address. If a field of `wanted` is None, every value of this field matches. Every
    other field of `wanted` must be equal to the field of the entity.

    For example, the filter `ClientQuotaEntity(user="alice")` matches two kinds of entities: the user alice, and the
    user alice together with any client id.
    """
    components = [
        Component(
            entity_type=type, match_type=QuotaMatch.EXACT if name else QuotaMatch.DEFAULT, match=name or None
        )
        for type, name in wanted.names.items()
    ]
    response = brokers.cluster.send(DescribeClientQuotasRequest(components=components))
    if response.error_code:
        raise response_error("quotas", response.error_code, response.error_message)
    found = {
        ClientQuotaEntity.of(entry.entity): {it.key: it.value for it in sorted(entry.values, key=lambda it: it.key)}
        for entry in response.entries or ()
    }
    return dict(sorted(found.items(), key=lambda item: [(name is None, name or "") for name in item[0]]))


def alter_quotas(
    brokers: Brokers, changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
) -> dict[ClientQuotaEntity, KafkaError | None]:
    """Set and remove quotas. `changes` has the form `{entity: {key: value}}`. The value None removes a quota.

    The returned dict contains one entry for each entity. The entry is None if the broker has made all changes of
    the entity, or a KafkaError if it has made none of them. If `validate_only` is true, the broker checks the
    changes, but does not make them. Needs Kafka 2.6.
    """
    entries = [
        Alteration(
            entity=[
                Alteration.EntityData(entity_type=type, entity_name=name or None)
                for type, name in entity.names.items()
            ],
            ops=[
                Alteration.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                for key, value in values.items()
            ],
        )
        for entity, values in changes.items()
    ]
    response = brokers.cluster.send(AlterClientQuotasRequest(entries=entries, validate_only=validate_only))
    errors = {
        ClientQuotaEntity.of(entry.entity): response_error("quotas", entry.error_code, entry.error_message)
        for entry in response.entries
        if entry.error_code
    }
    return {entity: errors.get(entity) for entity in changes}
