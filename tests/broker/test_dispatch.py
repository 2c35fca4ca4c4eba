"""Tests of the dispatcher: it returns the response of the handler, or closes the connection after an error."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from hmb.broker.deferred import Deferred
from hmb.broker.dispatch import Dispatcher
from hmb.broker.errors import CloseConnection
from hmb.broker.network.request_memory import Account
from hmb.protocol.allowance import ALLOWANCE, pay_nothing
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from hmb.protocol.schema import Response
from tests.broker.conftest import LISTENER, Asker

# ListGroups v0 of client "me": API key 16, version 0, correlation id 7, then the client id.
LIST_GROUPS = bytes.fromhex("0010 0000 00000007 0002 6d65")
NO_GROUPS = bytes.fromhex("00000007 0000 00000000")  # correlation id 7, no error, an empty list


def test_a_request_becomes_the_response_of_its_handler(ask: Asker) -> None:
    assert ask.raw(LIST_GROUPS) == NO_GROUPS


def test_the_handler_of_the_api_gets_the_decoded_request(ask: Asker) -> None:
    seen = []

    def handler(request: object, context: object) -> Response:
        seen.append(request)
        return ListGroupsResponse()

    dispatcher = Dispatcher(ask.broker, LISTENER, {ApiKey.LIST_GROUPS: handler})  # type: ignore[dict-item]
    parts = dispatcher.begin(memoryview(LIST_GROUPS))
    assert not isinstance(parts, Deferred)
    assert b"".join(bytes(part) for part in parts)[4:] == NO_GROUPS  # type: ignore[arg-type]
    assert seen == [ListGroupsRequest()]


def test_a_deferred_response_is_encoded_when_it_is_final(ask: Asker) -> None:
    waiting = Deferred(ListGroupsResponse)
    dispatcher = Dispatcher(ask.broker, LISTENER, {ApiKey.LIST_GROUPS: lambda request, context: waiting})
    begun = dispatcher.begin(memoryview(LIST_GROUPS))
    assert isinstance(begun, Deferred)
    assert b"".join(bytes(part) for part in begun.result())[4:] == NO_GROUPS  # type: ignore[arg-type]


def test_an_api_versions_request_of_an_unknown_version_is_answered_in_version_0(ask: Asker) -> None:
    answer = ask.raw(bytes.fromhex("0012 7fff 00000007 0002 6d65"))
    assert answer is not None and answer[:6] == bytes.fromhex("00000007 0023")  # UNSUPPORTED_VERSION is 35.


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ("0010 7fff 00000007 0002 6d65", "32767"),
        ("7fff 0000 00000007 0002 6d65", "32767"),
        ("0010 0000 0000", "malformed request"),
    ],
    ids=["unknown version", "unknown API", "incomplete header"],
)
def test_a_client_error_closes_the_connection(ask: Asker, frame: str, message: str) -> None:
    with pytest.raises(CloseConnection, match=message):
        ask.dispatcher.begin(memoryview(bytes.fromhex(frame)))


@pytest.mark.parametrize("fails", [False, True])
def test_decoded_values_count_as_memory_of_a_request_until_it_is_handled(ask: Asker, fails: bool) -> None:
    memory, seen = Account(None, 0), []

    def handler(request: object, context: object) -> Response:
        seen.append(ALLOWANCE.spend)
        if fails:
            raise ZeroDivisionError("planted")
        return ListGroupsResponse()

    dispatcher = Dispatcher(ask.broker, LISTENER, {ApiKey.LIST_GROUPS: handler})  # type: ignore[dict-item]
    with pytest.raises(CloseConnection) if fails else nullcontext():
        dispatcher.begin(memoryview(LIST_GROUPS), memory)
    assert (seen, ALLOWANCE.spend) == ([memory.take_values], pay_nothing)


def test_an_internal_error_closes_the_connection_and_is_logged(ask: Asker, caplog: pytest.LogCaptureFixture) -> None:
    def broken(request: object, context: object) -> Response:
        raise ZeroDivisionError("planted")

    dispatcher = Dispatcher(ask.broker, LISTENER, {ApiKey.LIST_GROUPS: broken})  # type: ignore[dict-item]
    with pytest.raises(CloseConnection, match="ListGroupsRequest v0 of client 'me' failed"):
        dispatcher.begin(memoryview(LIST_GROUPS))
    assert "planted" in caplog.text
