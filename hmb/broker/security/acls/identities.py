"""Finds the fields in a message that identify something, for example the field with a topic's name.

The broker can refuse a part of a request, for example one of several topics. The response must then contain an
error code for exactly this topic. So the broker must know which item of the response belongs to which item of
the request. Both items contain the topic's name, but the field may be called `name`, `topic` or `topic_name`.
The table IDENTITIES contains the meaning of each of these field names. With this table, `splitting.py` and
`refusal.py` need no separate code for each API.
"""

from __future__ import annotations

from collections.abc import Mapping

from hmb.protocol.fields import Field, version_range
from hmb.protocol.schema import Struct

IDENTITIES: Mapping[str, str] = {
    **dict.fromkeys(("name", "topic", "topic_name"), "topic"),
    "topic_id": "topic id",
    **dict.fromkeys(("partition_index", "index", "partition", "partition_id"), "partition"),
    **dict.fromkeys(("key", "group_id", "transactional_id", "producer_id", "member_id", "group_instance_id"), ""),
    **dict.fromkeys(("resource_type", "resource_name"), ""),
}
"""The meaning of each field that identifies an item of an array. For example, "name" and "topic_name" mean a topic.

An empty text says that the field's name is also its meaning, because Kafka always uses the same name.
"""

# The next two dicts store results, so `identities_in` and `fields_of` compute each result only once. The decorator
# @cache would do the same, but mypy reports an error for arguments of the type `type[Struct]`.
_IDENTITIES_IN: dict[type[Struct], Mapping[str, str]] = {}  # the results of `identities_in`
_EXISTING: dict[tuple[type[Struct], int], Mapping[str, Field]] = {}  # the results of `fields_of`


def identity_of(name: str) -> str | None:
    """Return the meaning of a field's name in IDENTITIES: "topic" for `topic_name`, None for `error_code`."""
    return IDENTITIES[name] or name if name in IDENTITIES else None


def identities_in(struct: type[Struct]) -> Mapping[str, str]:
    """Return the fields of `struct` that identify something, as a dict from meanings to field names.

    For example, the field `name` means a topic in IDENTITIES, so the dict contains {"topic": "name"}.
    """
    if (kept := _IDENTITIES_IN.get(struct)) is None:
        kept = {identity: name for name in struct.fields if (identity := identity_of(name))}
        _IDENTITIES_IN[struct] = kept
    return kept


def item_struct(field: Field) -> type[Struct] | None:
    """Return the class of the items if `field` is an array of structs. Otherwise, return None."""
    return None if field.item is None else field.item.struct


def fields_of(struct: type[Struct], version: int) -> Mapping[str, Field]:
    """Return the fields that `struct` has in a version of its message.

    The result is cached, because a request can have thousands of items, and all of them have the same fields.
    """
    if (kept := _EXISTING.get((struct, version))) is None:
        kept = {name: field for name, field in struct.fields.items() if version in version_range(field.versions)}
        _EXISTING[struct, version] = kept
    return kept
