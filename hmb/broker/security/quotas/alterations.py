"""Sets, removes and finds quotas, and checks each change as Kafka's controller does.

A quota applies to an *entity*: a user, a client id, a user together with a client id, or an IP address. An entity can
also be a default, for example the default for all users. HMB checks the changes of quotas in the same order as Kafka.
If a request contains several mistakes, a client therefore gets the same error from HMB and from Kafka.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from hmb.broker.security.store import QuotaEntity, SecurityState, SecurityStore
from hmb.protocol.enums import INT32_MAX, INT64_MAX, QUOTA_KEYS, QuotaEntityType, QuotaKey, QuotaMatch
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from hmb.security.ip_addresses import addresses_of

Component = DescribeClientQuotasRequest.ComponentData
MAX_QUOTAS = 10_000  # a broker stores the quotas of at most this number of entities
LONGEST_NAME = 1000  # characters
FRACTION = 1e-6  # a number counts as whole if its fraction is at most this value, for example 5.0000001
WHOLE = {  # the quotas that are whole numbers, with their greatest value
    QuotaKey.PRODUCER_BYTE_RATE: INT64_MAX,
    QuotaKey.CONSUMER_BYTE_RATE: INT64_MAX,
    QuotaKey.CONNECTION_CREATION_RATE: INT32_MAX,
}
Changes = Mapping[str, float | None]  # the new value of each key; None removes the quota


def alter(
    store: SecurityStore, changes: Mapping[QuotaEntity, Changes], *, validate_only: bool = False
) -> dict[QuotaEntity, KafkaError]:
    """Change the quotas of several entities in one step. Return an error for each entity that was not changed.

    Raises OSError if the changes cannot be written to disk.
    """
    errors: dict[QuotaEntity, KafkaError] = {}
    for entity, new in changes.items():
        try:
            check(entity, new)
        except KafkaError as error:
            errors[entity] = error

    def compute(state: SecurityState) -> SecurityState:
        quotas = dict(state.quotas)
        for entity, new in changes.items():
            if entity in errors:
                continue
            values = {**quotas.get(entity, {}), **new}
            quotas[entity] = {key: value for key, value in values.items() if value is not None}
            if not quotas[entity]:
                del quotas[entity]
            elif len(quotas) > max(MAX_QUOTAS, len(state.quotas)):
                del quotas[entity]
                why = f"at most {MAX_QUOTAS} entities have quotas"
                errors[entity] = KafkaError(ErrorCode.INVALID_REQUEST, why)
        return state if validate_only or quotas == state.quotas else replace(state, quotas=quotas)

    store.change(compute)
    return errors


def check(entity: QuotaEntity, changes: Changes) -> None:
    """Raise INVALID_REQUEST if the entity is invalid, or if a new quota has a name or a value that is not allowed."""
    keys = _keys_of(dict(entity))
    for key, value in changes.items():
        if value is None:
            continue
        if key not in keys:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key}")
        if not value > 0:  # This form also refuses NaN.
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Quota {key} must be greater than 0")
        limit = WHOLE.get(QuotaKey(key))
        if limit is not None:
            _check_whole(key, value, limit)


def _check_whole(key: str, value: float, limit: int) -> None:
    if value > float(limit):
        type = "an INT" if limit == INT32_MAX else "a LONG"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Proposed value for {key} is too large for {type}.")
    if math.fmod(value, 1) > FRACTION:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} cannot be a fractional value.")


def _keys_of(names: Mapping[str, str | None]) -> tuple[QuotaKey, ...]:
    """Return the names of the quotas that an entity can have. Raises INVALID_REQUEST if the entity is invalid."""
    if not names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    for type, name in names.items():
        if type not in list(QuotaEntityType):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {type}")
        if name is not None and not 0 < len(name) <= LONGEST_NAME:
            why = f"Empty {type} not supported" if not name else f"{type} has more than {LONGEST_NAME} characters"
            raise KafkaError(ErrorCode.INVALID_REQUEST, why)
    if QuotaEntityType.IP not in names:
        return QUOTA_KEYS[QuotaEntityType.USER]
    if len(names) > 1:
        why = "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
        raise KafkaError(ErrorCode.INVALID_REQUEST, why)
    address = names[QuotaEntityType.IP]
    if address is not None and not addresses_of(address):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{address} is not a valid IP or resolvable host.")
    return QUOTA_KEYS[QuotaEntityType.IP]


def described(
    quotas: Mapping[QuotaEntity, Mapping[str, float]], components: Iterable[Component], *, is_strict: bool
) -> list[tuple[QuotaEntity, Mapping[str, float]]]:
    """Return the entities that match a filter, with their quotas.

    An entity has one or two parts, for example a user and a client id. Each component of the filter is a condition
    for one part. An entity must match all components.

    If the filter is strict, the entity must not have other parts. For example, a strict filter for the user `alice`
    does not match `alice` together with a client id.

    Raises KafkaError if the filter is invalid.
    """
    conditions = _conditions(components)
    found = []
    for entity, values in quotas.items():
        names = dict(entity)
        has_types = names.keys() == conditions.keys() if is_strict else names.keys() >= conditions.keys()
        if has_types and all(matches(names[type]) for type, matches in conditions.items()):
            found.append((entity, values))
    return found


def _conditions(components: Iterable[Component]) -> dict[str, Callable[[str | None], bool]]:
    """Return a dict with the conditions of a filter: entity type -> condition.

    A condition is a function that takes the name of an entity, and returns whether the name matches. For example, a
    filter for the user `alice` has one condition, for the entity type `user`. This condition returns True only for
    `alice`.

    Raises KafkaError if the filter is invalid.
    """
    conditions: dict[str, Callable[[str | None], bool]] = {}
    for each in components:
        if not each.entity_type:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if each.entity_type in conditions:
            why = f"Entity type {each.entity_type} cannot appear more than once in the filter."
            raise KafkaError(ErrorCode.INVALID_REQUEST, why)
        if each.entity_type not in list(QuotaEntityType):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {each.entity_type}")
        conditions[each.entity_type] = _condition(each)
    if QuotaEntityType.IP in conditions and len(conditions) > 1:
        why = "An IP filter component cannot be combined with user or client-id filter components."
        raise KafkaError(ErrorCode.INVALID_REQUEST, why)
    return conditions


def _condition(component: Component) -> Callable[[str | None], bool]:
    wanted = component.match
    if component.match_type not in list(QuotaMatch):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown match type {component.match_type}")
    match = QuotaMatch(component.match_type)
    if (wanted is None) == (match is QuotaMatch.EXACT):
        needs = "a name" if wanted is None else "no name"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"A filter component of match type {match.name} must have {needs}.")
    if match is QuotaMatch.SPECIFIED:
        return lambda name: True
    return lambda name: name == wanted
