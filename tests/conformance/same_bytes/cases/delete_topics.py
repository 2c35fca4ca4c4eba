"""Test cases for DeleteTopics: a topic is given by its name, by its id, by both, or by neither."""

from __future__ import annotations

from typing import Any

from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.metadata import MetadataRequest

from ..case import NOBODYS_ID, Case, Step, Topic, case, id_of

State = DeleteTopicsRequest.DeleteTopicState
OWN = {"<name>": Topic()}


def names(*wanted: str, timeout: int = 30_000) -> Any:
    def request(version: int) -> DeleteTopicsRequest:
        if version < 6:
            return DeleteTopicsRequest(topic_names=list(wanted), timeout_ms=timeout)
        return DeleteTopicsRequest(topics=[State(name=name) for name in wanted], timeout_ms=timeout)

    return request


def states(*wanted: State) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=list(wanted), timeout_ms=30_000)


GONE = Step(
    MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="<name>")], allow_auto_topic_creation=False),
    until=lambda answer: answer.topics[0].error_code,
)
CASES: list[Case] = [
    case("one", names("<name>"), GONE, versions="1,3,5,6", topics=OWN, api_key=DeleteTopicsRequest.api_key),
    case("one, and again", names("<name>"), names("<name>"), versions="1,3,5,6", topics=OWN),
    case("twice the same", names("<name>", "<name>"), versions="1,3,5,6", topics=OWN),
    case("unknown", names("nobody")),
    case("unknown twice", names("nobody", "nobody")),
    case("one known, one unknown", names("<name>", "nobody"), versions="1,3,5,6", topics=OWN),
    case("none", names()),
    case("empty name", names("")),
    case("bad name", names("a/b")),
    case("long name", names("x" * 300)),
    case("timeout 0", names("<name>", timeout=0), versions="1,3,5,6", topics=OWN),
    case("timeout -1", names("<name>", timeout=-1), versions="1,3,5,6", topics=OWN),
    case("unknown, timeout 0", names("nobody", timeout=0)),
    case("by id", states(State(topic_id=id_of("<name>"))), topics=OWN, versions="6+"),
    case("by unknown id", states(State(topic_id=NOBODYS_ID)), versions="6+"),
    case("by the same unknown id", states(State(topic_id=NOBODYS_ID), State(topic_id=NOBODYS_ID)), versions="6+"),
    case("by neither", states(State()), versions="6+"),
    case("by neither, twice", states(State(), State()), versions="6+"),
    case("by both", states(State(name="<name>", topic_id=id_of("<name>"))), topics=OWN, versions="6+"),
    case("by name and unknown id", states(State(name="empty", topic_id=NOBODYS_ID)), versions="6+"),
    case("by unknown name and known id", states(State(name="nobody", topic_id=id_of("empty"))), versions="6+"),
    case(
        "same by name and by id",
        states(State(name="<name>"), State(topic_id=id_of("<name>"))),
        topics=OWN,
        versions="6+",
    ),
    case(
        "same id twice",
        states(State(topic_id=id_of("<name>")), State(topic_id=id_of("<name>"))),
        topics=OWN,
        versions="6+",
    ),
    case("by empty name", states(State(name="")), versions="6+"),
    case(
        "one by name, one by id",
        states(State(name="<name>"), State(topic_id=id_of("<name>-b"))),
        topics={**OWN, "<name>-b": Topic()},
        versions="6+",
    ),
]
