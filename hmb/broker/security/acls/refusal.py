"""Creates *refusals*, the responses to requests that the broker refuses. This module supports every API.

Before a handler runs, the broker can refuse a part of a request, or all of it, with an error code. There are two
reasons: ACLs forbid the part (guards.py), or a test simulates a fault (hmb/testing/faults).

Some responses have one error code for the whole response. Other responses have an error code for each topic,
partition, group or transactional id. This module looks at the fields of a response's class to find the error codes.

For example, a client sends a Produce request for partitions 0 and 1 of topic "a". The broker must refuse
partition 1 with the error NOT_LEADER_OR_FOLLOWER (code 6). First, the module `splitting.py` splits the request
into two requests, one for each partition. The broker then creates a response to each of the two requests, and
merges both responses:
    `refuse`, for partition 1         responses [a: [index 1, error 6]]
    the handler, for partition 0      responses [a: [index 0, error 0]]
    `merge` makes one response        responses [a: [index 0, error 0], [index 1, error 6]]

For each refused item of the request, `refuse` creates one item in the corresponding list of the response. For
example, the list `topic_data` of a Produce request corresponds to the list `responses` of its response.

A list of the request and the corresponding list of the response can have different names. `refuse` therefore
compares the lists' items: for example, the items of both lists contain a topic's name (`identities.py`).

Clients look for some errors only in certain fields of a response. Therefore `refuse` follows three rules:
- It writes an error in WHOLE_RESPONSE_ERRORS only into the error field of the whole response.
- It writes an error in REFUSED_PARTITION_ERRORS only into the error fields of topics and partitions. If the
  response has no such fields, the next rule applies.
- It writes every other error into all error fields. But in responses to Fetch and Metadata, it skips the error
  field of the whole response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from hmb.broker.security.acls.identities import fields_of, identities_in, identity_of, item_struct
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import FETCH_SESSION_ERRORS, ErrorCode
from hmb.protocol.fields import Field
from hmb.protocol.messages import response_class
from hmb.protocol.schema import Request, Response, Struct

AnyStruct = TypeVar("AnyStruct", bound=Struct)
ERROR_FIELDS = frozenset({"error_code", "partition_error_code"})
FAILED = ("base_offset", "committed_offset", "high_watermark", "low_watermark", "node_id", "port")
FAILED_VALUES = dict.fromkeys(FAILED, -1)
"""The values of fields in a response with an error, as in Kafka. All other fields have their default values."""
WHOLE_RESPONSE_ERRORS = FETCH_SESSION_ERRORS | {ErrorCode.REBOOTSTRAP_REQUIRED}
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
# For these two APIs, `refuse` sets the error code of the whole response only for errors in WHOLE_RESPONSE_ERRORS. For
# all other errors, `refuse` sets only the error codes of items, such as topics.
WITHOUT_WHOLE = (ApiKey.FETCH, ApiKey.METADATA)
# A dict replaces @cache, because mypy would reject @cache for arguments of the type `type[Struct]`.
_ERROR_ARRAYS: dict[tuple[type[Struct], int], Mapping[str, type[Struct]]] = {}  # the results of `_error_arrays`


def refuse(request: Request, version: int, code: ErrorCode, message: str | None = None) -> Response:
    """Return a response with this error code for each item of the request, for example for each partition.

    `message` is the text of the error, in responses that have a field for it. If `message` is None, the text is Kafka's
    description of the error code.
    """
    kind = response_class(request.api_key)
    places = [each for each in error_places(request.api_key) if each is not kind]
    is_partition_error = code in REFUSED_PARTITION_ERRORS and any(map(_is_in_topic, places))

    def sets(struct: type[Struct]) -> bool:
        if code in WHOLE_RESPONSE_ERRORS:
            return struct is kind
        return _is_in_topic(struct) if is_partition_error else not (struct is kind and kind.api_key in WITHOUT_WHOLE)

    response = _refuse(kind, request, version, (code, code.message if message is None else message), sets)
    assert isinstance(response, Response)
    return response


def _is_in_topic(struct: type[Struct]) -> bool:
    return not identities_in(struct).keys().isdisjoint(("topic", "partition"))


def _refuse(
    kind: type[Struct], source: Any, version: int, error: tuple[ErrorCode, str], sets: Callable[[type[Struct]], bool]
) -> Struct:
    """Return a response with an error code, or one part of this response (for example, one topic).

    - `kind` is the class of the result, for example `FetchResponse`.
    - `source` is the request, or a part of the request. The function copies names and partition indexes from
      `source` into the result.
    - `error` contains the error code and its text.
    - The function `sets` decides by an object's class whether the object gets the error code. For example,
      FETCH_SESSION_ID_NOT_FOUND concerns a whole Fetch response. So `sets(FetchResponse)` is True, and `sets`
      returns False for the class of a partition.
    """
    fields = fields_of(kind, version)
    values: dict[str, Any] = {name: value for name, value in FAILED_VALUES.items() if name in fields}
    values |= {name: memoryview(b"") for name, field in fields.items() if field.kind == "records"}
    if sets(kind) and fields.keys() & ERROR_FIELDS:
        values |= dict.fromkeys(fields.keys() & ERROR_FIELDS, error[0])
        if "error_message" in fields:
            values["error_message"] = error[1]
    values |= _identities(fields, source)
    for name, item in _error_arrays(kind, version).items():
        sources = _paired(source, item, version)
        if sources is None:
            # In this case, the request has no list for the response's list `name`. If the class `kind` has an error
            # field, leave the response's list empty. Otherwise, add one item with the error.
            sources = [] if fields.keys() & ERROR_FIELDS else [None]
        values[name] = [_refuse(item, each, version, error, sets) for each in sources]
    return kind(**values)


def _identities(fields: Mapping[str, Field], source: Any) -> dict[str, Any]:
    """Return the values that identify a response item, as a dict: field name -> value.

    For the topic "orders" in a Produce response of version 12, the result is {"name": "orders"}.

    The function copies the values from `source`, the corresponding item of the request. The dict `fields` maps the
    response item's field names to their declarations.
    """
    if isinstance(source, str | int):
        kind = "string" if isinstance(source, str) else "int32"
        return {next(name for name, field in fields.items() if identity_of(name) and field.kind == kind): source}
    if source is None:
        return {}
    known = {identity: getattr(source, name) for identity, name in identities_in(type(source)).items()}
    found = {name: known[identity] for name in fields if (identity := identity_of(name)) in known}
    return {name: value for name, value in found.items() if value is not None}


def _paired(source: Any, item: type[Struct], version: int) -> list[Any] | None:
    """Return the list in a request that corresponds to a list in the response.

    Two lists correspond if their items identify the same kind of object, such as topics. For example, the list
    `topic_data` of a Produce request corresponds to the list `responses` of the response.

    `source` is the request, or a part of the request. `item` is the class of the items in the response's list.

    If `source` has no corresponding list, return None. If the corresponding list is null, return an empty list.
    """
    if not isinstance(source, Struct):
        return None
    kinds = {identity_of(name): field.kind for name, field in fields_of(item, version).items() if identity_of(name)}
    for name, field in fields_of(type(source), version).items():
        if field.item is None:
            continue
        struct = field.item.struct
        if struct is None:
            is_same = field.item.kind in kinds.values()
        else:
            is_same = any(identity_of(each) in kinds for each in struct.fields if identity_of(each))
        if is_same:
            return getattr(source, name) or []
    return None


def merge(answer: AnyStruct, refused: Struct, version: int) -> AnyStruct:
    """Add the refusal `refused` to `answer`, the handler's response, and return `answer`.

    If both contain the same item, for example the same group, the item of `refused` replaces the item of `answer`.
    If the item is a topic with partitions, the function merges the partitions in the same way. If `refused` has an
    error code for the whole response, `answer` gets this error code.
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

    `merge` compares these values to find the same item in two responses. One of the two responses may lack the
    topic's id. So if an item contains both a topic's name and id, the result contains only the name.
    """
    values = {identity: getattr(item, name) for identity, name in identities_in(type(item)).items()}
    if values.get("topic"):
        values.pop("topic id", None)
    return tuple(values.items())


# -- functions that find the error codes in a response class, such as `FetchResponse`


@cache
def error_places(api: ApiKey) -> list[type[Struct]]:
    """Return the structs of an API's response that have an error code in at least one version of the API."""

    def walk(struct: type[Struct]) -> Iterator[type[Struct]]:
        if struct.fields.keys() & ERROR_FIELDS:
            yield struct
        for field in struct.fields.values():
            if (item := item_struct(field)) is not None:
                yield from walk(item)

    return list(walk(response_class(api)))


def _error_arrays(struct: type[Struct], version: int) -> Mapping[str, type[Struct]]:
    """Find arrays of `struct` that contain error codes. Return a dict: array name -> class of its items."""
    if (kept := _ERROR_ARRAYS.get((struct, version))) is None:
        items = {name: item for name, field in fields_of(struct, version).items() if (item := item_struct(field))}
        kept = {name: item for name, item in items.items() if _has_error(item, version)}
        _ERROR_ARRAYS[struct, version] = kept
    return kept


def _has_error(struct: type[Struct], version: int) -> bool:
    return bool(fields_of(struct, version).keys() & ERROR_FIELDS) or bool(_error_arrays(struct, version))
