"""Tests of the guards, which divide a request into a forbidden part and a permitted part."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hmb.broker.security.acls.authorizer import Access, Authorizer
from hmb.broker.security.acls.rule_guards import FREQUENT, guard_by_rule, guard_produce
from hmb.broker.security.acls.rules import RULES
from hmb.broker.security.store import SecurityState
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages import request_class, response_class
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse
from hmb.protocol.schema import Response
from tests.broker.security.test_acls import acl


@pytest.mark.parametrize("api", [ApiKey.PRODUCE, ApiKey.FETCH])
def test_the_handler_gets_the_permitted_topics(api: ApiKey, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "hmb")
    operation, field = RULES[api].topics, FREQUENT[api]
    assert operation is not None
    authorizer = Authorizer([], allows_without_acl=False)
    authorizer.load(SecurityState(acls={each.id: each for each in (acl("a", operation), acl("b", operation))}))
    access = Access(authorizer, "User:alice", "127.0.0.1")
    passed: list[Any] = []

    def request(*names: str) -> Any:
        topic = request_class(api).fields[field].item.struct  # type: ignore[union-attr]
        name, partitions = ("name", "partition_data") if api == ApiKey.PRODUCE else ("topic", "partitions")
        partition = topic.fields[partitions].item.struct()
        return request_class(api)(**{field: [topic(**{name: each, partitions: [partition]}) for each in names]})

    def handle(request: Any, _: Any) -> Response:
        passed.append(request)
        return response_class(api)()

    context: Any = SimpleNamespace(version=9)
    for names in (("a", "b"), ("a", "c", "c", "b")):
        guard_by_rule(RULES[api], request(*names), context, access, handle)
    assert passed == [request("a", "b")] * 2
    assert len([record for record in caplog.records if "denied" in record.getMessage()]) == 1


def test_a_remembered_permission_to_write_ends_with_the_acl() -> None:
    """The guard of Produce remembers the topics that a client may write to, until an ACL changes."""
    authorizer = Authorizer([], allows_without_acl=False)
    permission = acl("a", Op.WRITE)
    authorizer.load(SecurityState(acls={permission.id: permission}))
    passed: list[Any] = []

    def codes(name: str, principal: str = "User:alice") -> list[int]:
        data = ProduceRequest.TopicProduceData.PartitionProduceData()
        topic = ProduceRequest.TopicProduceData(name=name, partition_data=[data])
        access = Access(authorizer, principal, "127.0.0.1")
        context: Any = SimpleNamespace(version=9)
        answer = guard_produce(ProduceRequest(topic_data=[topic]), context, access, handle)
        return [each.error_code for topic in answer.responses for each in topic.partition_responses]

    def handle(request: Any, _: Any) -> Response:
        passed.append(request)
        return ProduceResponse()

    for _ in range(3):
        assert codes("a") == []
    assert len(passed) == 3 and len(authorizer.writable) == 1
    for name, principal in (("b", "User:alice"), ("a", "User:bob")):
        assert codes(name, principal) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    authorizer.load(SecurityState())
    assert codes("a") == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert len(passed) == 3
