"""Makes refusals. A refusal is a response with an error code; this module can make one for any API.

Before a handler runs, the broker can refuse a part of a request, or all of it, with an error code. There are two
reasons: ACLs forbid the part (guards.py), or a test simulates a fault (hmb/testing/faults).

The responses of the APIs have error codes in different fields: one for the whole response, or one for each topic,
partition, group or transactional id. This module reads from the message classes which fields contain error codes.

The module works in three steps. For example, a client sends a Produce request for the partitions 0 and 1 of topic "a".
A test has added a fault, so that partition 1 must get the error NOT_LEADER_OR_FOLLOWER (code 6):
    split      refused: topic_data [a: [1]]           rest: topic_data [a: [0]]
    refuse     responses [a: [index 1, error 6]]      the handler answers the rest: responses [a: [index 0, error 0]]
    merge      responses [a: [index 0, error 0], [index 1, error 6]]

`refuse` creates one item in the response for each refused item of the request. For each array of the response, `refuse`
must therefore find the array of the request from which the items come. The two arrays belong together if their items
have fields with the same meaning, for example a topic's name (see IDENTITIES).

`refuse` writes most errors into all error fields of the response. Two groups of errors are exceptions, because clients
look for them only in certain fields. An error of REFUSED_PARTITION_ERRORS is written only into topics and partitions.
An error of SESSION_ERRORS is written only into the error code of the whole response.

Limits: a simulated fault in Metadata requests cannot select a partition, because a Metadata request names only topics.
A Fetch request in a fetch session does not name all its partitions. Therefore `hmb.testing.faults` ends a client's
fetch session before a fault refuses partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import cache
from typing import Any, TypeVar

from hmb.broker.context import RequestContext
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import ResourceType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.fields import Field, version_range
from hmb.protocol.messages import request_class, response_class
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.schema import Request, Response, Struct
from hmb.protocol.topics import NO_TOPIC_ID

AnyStruct = TypeVar("AnyStruct", bound=Struct)
Selects = Callable[[str, int | None], bool]  # (topic, partition) -> whether to refuse it; None: the whole topic
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
ERROR_FIELDS = frozenset({"error_code", "partition_error_code"})
TOPIC_LISTS = ("topics", "topic_data", "v3_and_below_topics", "topic_partitions", "topic_names")  # request fields
MESSAGE = "a fault of the test"
FAILED = ("base_offset", "committed_offset", "high_watermark", "low_watermark", "node_id", "port")
FAILED_VALUES = dict.fromkeys(FAILED, -1)
"""The values of fields in a response with an error, as in Kafka. All other fields have their default values."""
SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.REBOOTSTRAP_REQUIRED,
    }
)
REFUSED_PARTITION_ERRORS = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
# These dicts replace @cache. mypy rejects @cache here: it takes a class for unhashable if its instances are unhashable.
_IDENTITIES_IN: dict[type[Struct], Mapping[str, str]] = {}  # the results of `_identities_in`
_EXISTING: dict[tuple[type[Struct], int], Mapping[str, Field]] = {}  # the results of `_existing`
_ERROR_ARRAYS: dict[tuple[type[Struct], int], Mapping[str, type[Struct]]] = {}  # the results of `_error_arrays`
WITHOUT_WHOLE = (ApiKey.FETCH, ApiKey.METADATA)  # APIs whose responses use the top error code only for SESSION_ERRORS


# -- functions that find fields in a message class


def _identity(name: str) -> str | None:
    """Return what a field identifies, for example "topic". Return None if the field identifies nothing."""
    return IDENTITIES[name] or name if name in IDENTITIES else None


def _identities_in(struct: type[Struct]) -> Mapping[str, str]:
    """Return the fields of `struct` that identify something, such as `{"topic": "name", "topic id": "topic_id"}`."""
    if (kept := _IDENTITIES_IN.get(struct)) is None:
        kept = {identity: name for name in struct.fields if (identity := _identity(name))}
        _IDENTITIES_IN[struct] = kept
    return kept


def _item_struct(field: Field) -> type[Struct] | None:
    """Return the class of an array's items. Return None if the field is no array of structs."""
    return None if field.item is None else field.item.struct


def _existing(struct: type[Struct], version: int) -> Mapping[str, Field]:
    """Return the fields of `struct` in a version. Cache the result, because a request can have thousands of items."""
    if (kept := _EXISTING.get((struct, version))) is None:
        kept = {name: field for name, field in struct.fields.items() if version in version_range(field.versions)}
        _EXISTING[struct, version] = kept
    return kept


def _error_arrays(struct: type[Struct], version: int) -> Mapping[str, type[Struct]]:
    """Return the arrays of `struct` whose items contain an error code: the array's name and the class of its items."""
    if (kept := _ERROR_ARRAYS.get((struct, version))) is None:
        items = {name: item for name, field in _existing(struct, version).items() if (item := _item_struct(field))}
        kept = {name: item for name, item in items.items() if _has_error(item, version)}
        _ERROR_ARRAYS[struct, version] = kept
    return kept


def _has_error(struct: type[Struct], version: int) -> bool:
    return bool(_existing(struct, version).keys() & ERROR_FIELDS) or bool(_error_arrays(struct, version))


@cache
def error_places(api: ApiKey) -> list[type[Struct]]:
    """Return the structs of an API's response that have an error code in at least one version of the API."""

    def walk(struct: type[Struct]) -> Iterator[type[Struct]]:
        if struct.fields.keys() & ERROR_FIELDS:
            yield struct
        for field in struct.fields.values():
            if (item := _item_struct(field)) is not None:
                yield from walk(item)

    return list(walk(response_class(api)))


@cache
def named_by(api: ApiKey) -> frozenset[str]:
    """Return what a request of an API can name. The set contains "topic", "partition", both, or neither."""
    found = set[str]()

    def walk(struct: type[Struct]) -> None:
        for name, field in struct.fields.items():
            item = _item_struct(field)
            if name in TOPIC_LISTS:
                found.add("topic")
                if item is not None and _partition_list(item) is not None:
                    found.add("partition")
            elif name == "resources":
                found.add("topic")
            elif item is not None:
                walk(item)

    walk(request_class(api))
    return frozenset(found)


def _partition_list(topic: type[Struct]) -> str | None:
    """Return the name of the field with the partitions of a topic, or None if the topic has no such field."""
    return next((name for name, field in topic.fields.items() if field.item and "partition" in name), None)


# -- step 1: split the request


def split(struct: Struct, context: RequestContext, selects: Selects) -> tuple[Any, Any]:
    """Split a request into two: one with the topics and partitions that `selects` accepts, and one with all others.

    The first request is None if `selects` accepts nothing. The second request is None if `selects` accepts everything.
    A null list of topics in the request means all topics. The function first replaces null by the list of all topics.
    If `struct` is a part of a request, the function splits this part in the same way.
    """
    refused, rest = copy(struct), copy(struct)
    is_refused = is_rest = False
    for name, field in _existing(type(struct), context.version).items():
        items = getattr(struct, name)
        if name in TOPIC_LISTS:
            pairs = [_split_topic(each, context, selects) for each in _topics(struct, name, field, context)]
        elif name == "resources":
            pairs = [_whole(each, _is_selected_resource(each, selects)) for each in items]
        elif _item_struct(field) is not None:
            pairs = [split(each, context, selects) for each in items or ()]
            if all(one is None for one, _ in pairs):
                continue
        else:
            continue
        if items is None and not pairs:
            continue  # Keep the null, because it means "unchanged" in ConsumerGroupHeartbeat.
        ours, others = [one for one, _ in pairs if one is not None], [other for _, other in pairs if other is not None]
        setattr(refused, name, ours)
        setattr(rest, name, others)
        is_refused, is_rest = is_refused or bool(ours), is_rest or bool(others)
    return refused if is_refused else None, rest if is_rest or not is_refused else None


def _topics(message: Struct, name: str, field: Field, context: RequestContext) -> list[Any]:
    """Return the topics in the field `name` of a request. If the request means all topics, return the broker's topics.

    A list that is null means all topics. ConsumerGroupHeartbeat (KIP-848) is an exception: null means "unchanged", so
    return an empty list. The function recognizes this request by its topics, which have no name.
    """
    items, struct = getattr(message, name), _item_struct(field)
    is_all = message.is_for_all_topics(context.version) if isinstance(message, MetadataRequest) else items is None
    if struct is None or not is_all:
        return items or []
    name_field = next((name for name in struct.fields if _identity(name) == "topic"), None)
    if name_field is None:
        return []
    partitions = _partition_list(struct)
    return [
        struct(**{name_field: each.name}, **({} if partitions is None else {partitions: sorted(each.partitions)}))
        for each in context.broker.topics.all()
    ]


def _split_topic(topic: Any, context: RequestContext, selects: Selects) -> tuple[Any, Any]:
    name = topic_name(topic, context)
    partitions = None if isinstance(topic, str) else _partition_list(type(topic))
    if partitions is None:
        return _whole(topic, selects(name, None))
    refused, rest = copy(topic), copy(topic)
    ours, others = list[Any](), list[Any]()
    for each in getattr(topic, partitions) or ():
        (ours if selects(name, _number(each)) else others).append(each)
    setattr(refused, partitions, ours)
    setattr(rest, partitions, others)
    return refused if ours else None, rest if others else None


def _whole(item: Any, is_selected: bool) -> tuple[Any, Any]:
    return (item, None) if is_selected else (None, item)


def _is_selected_resource(resource: Any, selects: Selects) -> bool:
    return resource.resource_type == ResourceType.TOPIC and selects(resource.resource_name, None)


def topic_name(topic: Any, context: RequestContext) -> str:
    """Return the name of a topic in a request or a response. If the message contains the topic's id, look up the name.

    An id has precedence over a name, as in the handlers (`Topics.find`). Otherwise a client could send the id of a
    forbidden topic together with the name of a permitted topic. Return an empty text if no topic has this id.
    """
    if isinstance(topic, str):
        return topic
    fields = _identities_in(type(topic))
    topic_id = getattr(topic, fields["topic id"]) if "topic id" in fields else NO_TOPIC_ID
    if topic_id == NO_TOPIC_ID:
        return getattr(topic, fields["topic"]) or "" if "topic" in fields else ""
    try:
        return context.broker.topics.find(None, topic_id).name
    except KafkaError:  # No topic has this id.
        return ""


def _number(partition: Any) -> int:
    if isinstance(partition, int):
        return partition
    return int(getattr(partition, _identities_in(type(partition))["partition"]))


# -- step 2: create the response for the refused part of a request


def refuse(request: Request, version: int, code: ErrorCode, message: str = MESSAGE) -> Response:
    """Return a response with this error code for each item of the request, for example for each partition.

    `message` is the text of the error, in responses that have a field for it.
    """
    kind = response_class(request.api_key)
    places = [each for each in error_places(request.api_key) if each is not kind]
    is_partition_error = code in REFUSED_PARTITION_ERRORS and any(map(_is_in_topic, places))

    def sets(struct: type[Struct]) -> bool:
        if code in SESSION_ERRORS:
            return struct is kind
        return _is_in_topic(struct) if is_partition_error else not (struct is kind and kind.api_key in WITHOUT_WHOLE)

    response = _refuse(kind, request, version, (code, message), sets)
    assert isinstance(response, Response)
    return response


def _is_in_topic(struct: type[Struct]) -> bool:
    return not _identities_in(struct).keys().isdisjoint(("topic", "partition"))


def _refuse(
    kind: type[Struct], source: Any, version: int, error: tuple[ErrorCode, str], sets: Callable[[type[Struct]], bool]
) -> Struct:
    """Return a struct of the class `kind`, which is the class of the response or of a part of it.

    If `sets(kind)` is true, the struct contains the code and the message in `error`. `source` is the part of the
    request that this struct answers. The struct contains the same names and partition indexes as `source`.
    """
    fields = _existing(kind, version)
    values: dict[str, Any] = {name: value for name, value in FAILED_VALUES.items() if name in fields}
    values |= {name: memoryview(b"") for name, field in fields.items() if field.kind == "records"}
    if sets(kind) and fields.keys() & ERROR_FIELDS:
        values |= dict.fromkeys(fields.keys() & ERROR_FIELDS, error[0])
        if "error_message" in fields:
            values["error_message"] = error[1]
    values |= _identities(fields, source)
    for name, item in _error_arrays(kind, version).items():
        sources = _paired(source, item, version)
        if sources is None:  # No array of the request matches. If no other field has the error, add one item.
            sources = [] if fields.keys() & ERROR_FIELDS else [None]
        values[name] = [_refuse(item, each, version, error, sets) for each in sources]
    return kind(**values)


def _identities(fields: Mapping[str, Field], source: Any) -> dict[str, Any]:
    """Return the fields, with their values, that identify an item of the response, for example a topic's name.

    `source` is the item of the request that this item of the response answers.
    """
    if isinstance(source, str | int):
        kind = "string" if isinstance(source, str) else "int32"
        return {next(name for name, field in fields.items() if _identity(name) and field.kind == kind): source}
    if source is None:
        return {}
    known = {identity: getattr(source, name) for identity, name in _identities_in(type(source)).items()}
    found = {name: known[identity] for name in fields if (identity := _identity(name)) in known}
    return {name: value for name, value in found.items() if value is not None}


def _paired(source: Any, item: type[Struct], version: int) -> list[Any] | None:
    """Return the items of the request to which the response must contain answers of the class `item`.

    Items of the request belong to the class `item` if both have a field that identifies the same thing, for example a
    topic. Return the first such array in `source`, or None if `source` has none.
    """
    if not isinstance(source, Struct):
        return None
    identities = {_identity(name): field.kind for name, field in _existing(item, version).items() if _identity(name)}
    for name, field in _existing(type(source), version).items():
        if field.item is None:
            continue
        struct = field.item.struct
        if struct is None:
            is_same = field.item.kind in identities.values()
        else:
            is_same = any(_identity(each) in identities for each in struct.fields if _identity(each))
        if is_same:
            return getattr(source, name) or []
    return None


# -- step 3: merge the refusal with the handler's response


def merge(answer: AnyStruct, refused: Struct, version: int) -> AnyStruct:
    """Add the items of `refused` to `answer`, and return `answer`.

    If both responses have an item for the same partition, topic or group, keep the item of `refused`.
    """
    for name in ERROR_FIELDS:
        if name in answer.fields and getattr(refused, name):
            setattr(answer, name, getattr(refused, name))
    for name, item in _error_arrays(type(answer), version).items():
        items = {_key(each): each for each in getattr(answer, name) or ()}
        for each in getattr(refused, name):
            known = items.get(_key(each))
            if known is not None and _error_arrays(item, version) and any(
                getattr(each, nested) for nested in _error_arrays(item, version)
            ):
                merge(known, each, version)
            else:
                items[_key(each)] = each
        setattr(answer, name, list(items.values()))
    return answer


def _key(item: Struct) -> tuple[Any, ...]:
    """Return the values that identify an item in its array, for example a topic's name.

    If an item contains both the name and the id of a topic, the result contains only the name. The reason: `merge`
    compares items of two responses, and a topic's id can be missing in one of them.
    """
    values = {identity: getattr(item, name) for identity, name in _identities_in(type(item)).items()}
    if values.get("topic"):
        values.pop("topic id", None)
    return tuple(values.items())
