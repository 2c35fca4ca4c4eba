"""Tests of pipelined requests: the broker sends their responses together, after one sync and with one system call."""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import cast

import pytest

from hmb.broker import BrokerServer
from hmb.broker.context import ConnectedClient
from hmb.broker.deferred import Deferred, final
from hmb.broker.dispatch import Dispatcher, EncodedResponse
from hmb.broker.errors import CloseConnection
from hmb.broker.network import gathering
from hmb.broker.network.connection import AcceptedConnection
from hmb.broker.network.gathering import MAX_DEFERRED
from hmb.broker.network.request_memory import Account, RequestMemory
from hmb.broker.network.requests import Requests
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ClientConnection
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from hmb.protocol.primitives import Part
from hmb.protocol.schema import Request
from hmb.records import Record, RecordBatch, encode_batch
from tests.broker.calls import produce
from tests.broker.conftest import LISTENER, Asker, Wire, as_bytes

VERSION = 8
Topic = OffsetCommitRequest.OffsetCommitRequestTopic


def commit(offset: int, topic: str = "t") -> OffsetCommitRequest:
    partition = Topic.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topics = [Topic(name=topic, partitions=[partition])]
    return OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=topics)


def fetch() -> OffsetFetchRequest:
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    return OffsetFetchRequest(
        groups=[group(group_id="g", topics=[group.OffsetFetchRequestTopics(name="t", partition_indexes=[0])])]
    )


def connection_of(ours: socket.socket, dispatcher: Dispatcher) -> AcceptedConnection:
    return AcceptedConnection(
        ours,
        "peer",
        ConnectedClient(),
        dispatcher,
        idle=30,
        max_request=1_000,
        memory=RequestMemory(1_000_000),
        on_close=lambda closed: None,
    )


def pipeline(wire: Wire, requests: list[Request]) -> list[object]:
    """Send all requests together, and return all responses."""
    client = ClientConnection("test")
    wire.send(b"".join(as_bytes(part) for request in requests for part in client.request(request, VERSION)))
    answers = []
    for _ in requests:
        frame = wire.frame()
        assert frame is not None
        answers.append(client.receive(memoryview(frame))[1])  # `receive` checks the correlation id.
    return answers


@pytest.fixture
def wire(connect: Callable[[], Wire]) -> Wire:
    """Return a connection to a broker that has the topic t and a group coordinator."""
    wire = connect()
    wire.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), 9)
    wire.ask(FindCoordinatorRequest(key="g"), 3)
    return wire


def test_pipelined_commits_are_answered_in_order_and_the_last_one_counts(wire: Wire) -> None:
    count = 3 * MAX_DEFERRED + 5
    *answers, fetched = pipeline(wire, [*(commit(offset) for offset in range(count)), fetch()])
    assert [answer.topics[0].partitions[0].error_code for answer in answers] == [0] * count  # type: ignore[attr-defined]
    assert fetched.groups[0].topics[0].partitions[0].committed_offset == count - 1  # type: ignore[attr-defined]


def test_each_request_sees_the_commits_of_earlier_requests(wire: Wire) -> None:
    requests = [request for offset in range(10) for request in (commit(offset), commit(offset + 1), fetch())]
    answers = pipeline(wire, requests)[2::3]
    seen = [answer.groups[0].topics[0].partitions[0].committed_offset for answer in answers]  # type: ignore[attr-defined]
    assert seen == list(range(1, 11))


def test_a_commit_that_fails_fails_alone(wire: Wire) -> None:
    first, bad, last = pipeline(wire, [commit(1), commit(2, "nosuch"), commit(3)])
    errors = [answer.topics[0].partitions[0].error_code for answer in (first, bad, last)]  # type: ignore[attr-defined]
    assert errors == [0, 3, 0]


def test_commits_before_a_request_that_breaks_the_protocol_are_answered(wire: Wire) -> None:
    client = ClientConnection("test")
    good = b"".join(as_bytes(part) for offset in range(3) for part in client.request(commit(offset), VERSION))
    wire.send(good + bytes.fromhex("00000008 0008 0008 00000009"))
    for _ in range(3):
        frame = wire.frame()
        assert frame is not None and client.receive(memoryview(frame))
    assert wire.frame() is None


def test_pipelined_commits_share_a_batch_and_a_sync(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    ask.broker.topics.create("t", 1)
    ask.broker.groups.make_topic()
    frames = [b"".join(map(as_bytes, ask.client.request(commit(offset), VERSION)))[4:] for offset in range(20)]
    begun = [ask.dispatcher.begin(memoryview(frame)) for frame in frames]
    writes: list[int] = []
    monkeypatch.setattr(os, "pwritev", lambda *args, write=os.pwritev: writes.append(1) or write(*args))
    assert all(isinstance(each, Deferred) for each in begun)
    answers = [final(each) for each in begun]
    assert len(answers) == 20 and len(writes) == 1


@pytest.mark.parametrize(("acks", "syncs", "sends"), [(1, 0, 2), (-1, 1, 1)])
def test_pipelined_produces_share_a_sync_and_a_system_call(
    ask: Asker, monkeypatch: pytest.MonkeyPatch, acks: int, syncs: int, sends: int
) -> None:
    """Several Produce requests of one client share a sync, and the broker sends their responses together.

    The client sends five requests. With acks=all, the broker syncs once, and sends all five responses with one system
    call. With acks=1, no response waits for a sync. The broker sends at most four such responses together, so it makes
    two system calls.
    """
    log = ask.broker.topics.create("t", 1).partitions[0]
    log.append(RecordBatch.parse(encode_batch([Record(0, 0, None, b"value")])))
    log.flush()  # The first flush of a new file also syncs its directory and the manifest.
    requests = [produce(encode_batch([Record(0, 0, None, b"value")]), acks=acks) for _ in range(5)]
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as theirs:
        ours, _ = server.accept()
        theirs.sendall(b"".join(as_bytes(part) for each in requests for part in ask.client.request(each, VERSION)))
        theirs.shutdown(socket.SHUT_WR)
        synced, sent = list[int](), list[int]()
        monkeypatch.setattr(gathering, "send", lambda *args, send=gathering.send: sent.append(1) or send(*args))
        monkeypatch.setattr(os, "fdatasync", lambda file, sync=os.fdatasync: synced.append(1) or sync(file))
        served = connection_of(ours, ask.dispatcher)
        served.thread.start()
        served.thread.join(30)
        stream = io.BytesIO(theirs.recv(10_000))
    answers = [ask.client.receive(memoryview(stream.read(int.from_bytes(stream.read(4)))))[1] for _ in requests]
    offsets = [answer.responses[0].partition_responses[0].base_offset for answer in answers]  # type: ignore[attr-defined]
    assert (offsets, len(synced), len(sent)) == ([1, 2, 3, 4, 5], syncs, sends)


@pytest.mark.parametrize(("api_key", "sends"), [(ApiKey.PRODUCE, 1), (ApiKey.FETCH, 3)])
def test_a_ready_response_waits_only_if_the_next_request_is_a_produce(
    monkeypatch: pytest.MonkeyPatch, api_key: ApiKey, sends: int
) -> None:
    """A ready response may wait while the broker handles the next Produce request, but not the next Fetch request.

    A later Fetch request can wait for new records. An earlier response that is ready must not wait for these records.
    A Produce request does not wait for records, so the broker sends the responses to three Produce requests together if
    the requests arrive together.
    """

    class Ready:
        def begin(self, frame: memoryview, memory: Account) -> EncodedResponse:
            return [b"one"]

    sent: list[int] = []
    monkeypatch.setattr(gathering, "send", lambda *args, send=gathering.send: sent.append(1) or send(*args))
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as theirs:
        ours, _ = server.accept()
        theirs.sendall(3 * (b"\0\0\0\2" + api_key.to_bytes(2)))
        theirs.shutdown(socket.SHUT_WR)
        served = connection_of(ours, cast(Dispatcher, Ready()))
        served.thread.start()
        served.thread.join(30)
        assert (len(sent), theirs.recv(100)) == (sends, b"oneoneone")


def test_an_internal_error_while_waiting_is_logged_with_its_client(
    ask: Asker, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> OffsetCommitResponse:
        raise ZeroDivisionError

    handlers = {OffsetCommitRequest.api_key: lambda request, context: Deferred(broken)}
    dispatcher = Dispatcher(ask.broker, LISTENER, handlers)
    frame = b"".join(map(as_bytes, ask.client.request(commit(1), VERSION)))[4:]
    answer = dispatcher.begin(memoryview(frame))
    assert isinstance(answer, Deferred)
    with pytest.raises(CloseConnection):
        answer.result()
    assert "OffsetCommitRequest v8 of client 'test' failed" in caplog.text


def test_an_internal_error_in_one_of_several_requests_repeats_none_and_keeps_earlier_responses() -> None:
    finished: list[int] = []

    class Commits:
        def begin(self, frame: memoryview, memory: Account) -> Deferred[EncodedResponse]:
            return Deferred(partial(self.finish, frame[-1]))

        def finish(self, number: int) -> list[Part]:
            finished.append(number)
            if number == 2:
                raise CloseConnection("a fault of ours")
            return [b"one"]

    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as theirs:
        ours, _ = server.accept()
        theirs.sendall(b"".join(b"\0\0\0\3\0\x08" + bytes([number]) for number in (1, 2, 3)))
        commits = cast(Dispatcher, Commits())
        served = connection_of(ours, commits)
        served.thread.start()
        served.thread.join(30)
        assert (finished, theirs.recv(10)) == ([1, 2], b"one")


# -- looking for the next request in the read buffer


@pytest.mark.parametrize(
    ("sent", "is_another"),
    [
        (b"", False),
        (b"\0\0\0", False),
        (b"\0\0\0\4\0\x08", False),  # an incomplete request: its last bytes have not arrived
        (b"\0\0\0\4\0\x08ab", True),
        (b"\0\0\0\4\0\x08ab\0\0", True),
        (b"\0\0\0\4\0\x09ab", False),  # a request with another API key
        (b"\0\0\0\1\0", False),  # a request that is too short for an API key
        (b"\xff\xff\xff\xff\0\x08", False),  # a negative length, which the next read refuses
    ],
)
def test_the_broker_finds_another_request_of_the_same_kind_without_waiting(sent: bytes, is_another: bool) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, Requests(ours.fileno(), 1_000, RequestMemory(1_000)) as requests:
        theirs.sendall(b"\0\0\0\4\0\x08xy" + sent)
        frame = requests.next()
        assert frame == b"\0\x08xy"
        assert requests.has_next_request() is is_another


def test_a_stopping_broker_answers_the_commits_that_it_has_begun(broker: BrokerServer, wire: Wire) -> None:
    client = ClientConnection("test")
    wire.send(b"".join(as_bytes(part) for offset in range(100) for part in client.request(commit(offset), VERSION)))
    first = wire.frame()
    assert first is not None
    broker.stop()
    answers = [first]
    while (frame := wire.frame()) is not None:
        answers.append(frame)
    assert all(client.receive(memoryview(each)) for each in answers)
