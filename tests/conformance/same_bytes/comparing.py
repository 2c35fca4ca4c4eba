"""Compares two responses field by field.

A response becomes a tree of dictionaries. A struct becomes a dictionary of its fields. An array of structs becomes a
dictionary, too. Each of its keys identifies an item, for example by the name of a topic. The order of the items
therefore does not matter.

Each broker assigns its own ids, so a placeholder replaces each id. If two ids belong to the same topic, member or
producer, they get the same placeholder.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.schema import Struct
from hmb.records import iter_batches

from .explained import MASKED

# The fields that identify an item of an array, in order of preference. An item is identified by its first field in this
# list.
IDENTITY = (
    "topic_name",
    "topic",
    "name",
    "topic_id",
    "partition_index",
    "partition",
    "partition_id",
    "index",
    "group_id",
    "group",
    "resource_name",
    "key",
    "api_key",
    "member_id",
    "node_id",
    "broker_id",
    "batch_index",
    "transactional_id",
    "entity_type",
    "entity",
)
TEXTS = ("error_message", "documentation", "batch_index_error_message")
A_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
UUID_IN_BASE64 = re.compile(r"[\w-]{22}")
LONG = 100  # At most this number of characters of a value is shown.
ABSENT = "(absent)"


@dataclass(frozen=True)
class Difference:
    """One field with different values in the two responses. The object contains both values."""

    path: str
    ours: str
    kafka: str

    @property
    def is_text(self) -> bool:
        """Return whether only the words of an error message differ.

        If HMB's message is empty and Kafka's is not, the result is False.
        """
        return self.path.rpartition(".")[2] in TEXTS and self.ours not in ("None", "", ABSENT)

    def __str__(self) -> str:
        return f"{self.path}: {shortened(self.ours)}, Kafka: {shortened(self.kafka)}"


def shortened(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]}..."


class Normalizer:
    """Converts responses to trees. In each comparison, each broker has its own `Normalizer`."""

    def __init__(self, known: Mapping[object, str], may_differ: Collection[str], ignored: Collection[str]) -> None:
        self._known = known  # value -> its placeholder
        self._may_differ = {*may_differ, *MASKED}
        self._ignored = frozenset(ignored)
        self._numbers: dict[str, str] = {}  # unknown ids -> numbered placeholders, in the order of their appearance

    def tree(self, answer: object) -> Any:
        return self._value(answer, "")

    def _value(self, value: Any, field: str) -> Any:
        if field in self._may_differ:
            return "*" if value not in (None, "", -1, 0, []) else value
        if isinstance(value, Struct):
            names = (name for name in value.fields if name not in self._ignored)
            return {name: self._value(getattr(value, name), name) for name in names}
        if isinstance(value, list) and value and isinstance(value[0], Struct):
            return _by_identity([self._value(item, field) for item in value])
        if isinstance(value, memoryview):
            return _records(value)
        if isinstance(value, str | UUID) and value in self._known:
            return self._known[value]
        if isinstance(value, UUID) and value.int:
            return self._number(str(value))
        if isinstance(value, str) and field == "member_id" and UUID_IN_BASE64.fullmatch(value):
            return self._number(value)
        if isinstance(value, str):
            return A_UUID.sub(lambda match: self._number(match[0]), value)
        if field.endswith("error_code"):
            return ErrorCode(value).name
        return value

    def _number(self, unknown: str) -> str:
        return self._numbers.setdefault(unknown, f"#{len(self._numbers) + 1}")


def _by_identity(items: list[dict[str, Any]]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for number, item in enumerate(items):
        found = (item[name] for name in IDENTITY if item.get(name) not in (None, "", UUID(int=0)))
        identity = next(found, number)
        key = str(sorted(identity.items()) if isinstance(identity, dict) else identity)
        again = 2
        while key in tree:
            key, again = f"{key.partition('~')[0]}~{again}", again + 1
        tree[key] = item
    return tree


def _records(data: memoryview) -> str:
    """Describe record batches as text. Two texts are equal only if the bytes are equal."""
    if not data:
        return "no records"
    try:
        offsets = [f"{batch.base_offset}-{batch.last_offset} (magic {batch.magic})" for batch in iter_batches(data)]
    except KafkaError as error:
        offsets = [str(error)]
    return f"{len(data)} bytes, checksum {zlib.crc32(data):08x}: {', '.join(offsets)}"


def differences(ours: Any, kafka: Any, path: str = "") -> Iterator[Difference]:
    if isinstance(ours, dict) and isinstance(kafka, dict):
        for name in {**ours, **kafka}:
            yield from differences(ours.get(name, ABSENT), kafka.get(name, ABSENT), f"{path}.{name}".lstrip("."))
    elif ours != kafka and not (ours in ({}, []) and kafka in ({}, [])):
        yield Difference(path, str(ours), str(kafka))
