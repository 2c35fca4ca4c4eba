"""Splits a request of any API into the part that the broker refuses, and the rest.

Before a handler runs, the broker can refuse a part of a request. There are two reasons: ACLs forbid the part
(guards.py), or a test simulates a fault (hmb/testing/faults). The handler then gets only the rest of the request.

The fields for topics and partitions have different names in different APIs. This module finds these fields in
the message classes.

For example, a Produce request names partitions 0 and 1 of topic "a", and the broker refuses partition 1.
`split` divides the request into two:
    refused    topic_data [a: [1]]
    rest       topic_data [a: [0]]

The module `refusal` creates a response with an error code for each refused topic or partition.

Limits: `split` cannot separate the partitions of a Metadata request, because the request names only topics. So
a test cannot simulate a fault of a single partition in Metadata requests (hmb/testing/faults).

A test can simulate a fault of one partition in the Fetch requests of a client. The broker then uses no fetch
session (KIP-227) with this client. In a session, a request names only changed partitions, so the partition with
the fault could be missing. Without a session, each request names all partitions that the client fetches.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any

from hmb.broker.context import RequestContext
from hmb.broker.security.acls.identities import fields_of, identities_in, identity_of, item_struct
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import ResourceType
from hmb.protocol.errors import KafkaError
from hmb.protocol.fields import Field
from hmb.protocol.messages import request_class
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.schema import Struct
from hmb.protocol.topics import NO_TOPIC_ID

# A function of this type returns whether `split` puts a partition into the refused part of a request. Its arguments
# are the topic's name and the partition's number. The number None means the whole topic.
Selects = Callable[[str, int | None], bool]
TOPIC_LISTS = ("topics", "topic_data", "v3_and_below_topics", "topic_partitions", "topic_names")  # request fields


def split(struct: Struct, context: RequestContext, selects: Selects) -> tuple[Any, Any]:
    """Split a request into two: the topics and partitions that `selects` accepts, and all others.

    If `selects` accepts nothing, the first request is None. If it accepts everything, the second request is None.

    In many APIs, a request for all topics contains null instead of a list. The function replaces this null by a
    list of all topics.

    The argument `struct` is a whole request, or only a part of a request.
    """
    refused, rest = copy(struct), copy(struct)
    is_refused = is_rest = False
    for name, field in fields_of(type(struct), context.version).items():
        items = getattr(struct, name)
        if name in TOPIC_LISTS:
            pairs = [_split_topic(each, context, selects) for each in _topics(struct, name, field, context)]
        elif name == "resources":
            pairs = [_whole(each, _is_selected_resource(each, selects)) for each in items]
        elif item_struct(field) is not None:
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
    """Return the topics of a request, or all topics of the broker if the request means all topics.

    The field `name` of `message` contains the list of topics. `field` declares this field. In most APIs, null
    instead of a list means all topics. In version 0 of Metadata, an empty list also means all topics.

    In a ConsumerGroupHeartbeat request (KIP-848), null means that the list has not changed, so the function returns
    an empty list. The function recognizes this request because `field` declares a topic id for each topic, but no
    name.
    """
    items, struct = getattr(message, name), item_struct(field)
    is_all = message.is_for_all_topics(context.version) if isinstance(message, MetadataRequest) else items is None
    if struct is None or not is_all:
        return items or []
    name_field = next((name for name in struct.fields if identity_of(name) == "topic"), None)
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
    """Return the name of a topic in a request or a response.

    If the message contains the topic's id, find the name by this id, even if the message also contains a name. The
    handlers do the same (`Topics.find`). Otherwise a client could send the id of a forbidden topic together with
    the name of a permitted topic. If no topic has this id, return an empty text.
    """
    if isinstance(topic, str):
        return topic
    fields = identities_in(type(topic))
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
    return int(getattr(partition, identities_in(type(partition))["partition"]))


@cache
def named_by(api: ApiKey) -> frozenset[str]:
    """Return a set that shows whether the requests of an API contain topics and partitions.

    A Produce request contains topics and partitions, so the set is {"topic", "partition"}. A Metadata request
    contains only topics, so the set is {"topic"}. For an API without topics, the set is empty.
    """
    found = set[str]()

    def walk(struct: type[Struct]) -> None:
        for name, field in struct.fields.items():
            item = item_struct(field)
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
