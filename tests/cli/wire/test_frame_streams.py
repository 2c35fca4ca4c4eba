"""Tests of the two streams of a proxy: they forward all bytes without a change, and print every frame."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmb.cli.wire.frame_streams import MAX_KEPT, OpenRequests, RequestStream, ResponseStream, SeenFrame
from hmb.cli.wire.readdressing import Address
from hmb.protocol.connection import ClientConnection, ServerConnection
from hmb.protocol.headers import RequestHeader
from hmb.protocol.messages.api_versions import ApiVersionsResponse
from hmb.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.schema import Request, Response
from tests.golden.files import load

GOLDEN = {path.stem: load(path) for path in sorted((Path(__file__).parents[2] / "golden").glob("*.txt"))}
ANSWERED = {name: sides for name, sides in GOLDEN.items() if "response" in sides}
MetadataBroker = MetadataResponse.MetadataResponseBroker


class Pair:
    """The two streams of one connection: requests and responses."""

    def __init__(self, address: Callable[[Address, bool], Address] = lambda address, _: address) -> None:
        open_requests = OpenRequests()
        self.seen: list[SeenFrame] = []
        self.warnings: list[str] = []
        self.requests = RequestStream(open_requests, self.seen.append, self.warnings.append)
        self.responses = ResponseStream(open_requests, self.seen.append, self.warnings.append, address)

    def exchange(self, request: Request, response: Response, version: int) -> bytes:
        """Exchange a request and its response. Return the bytes that the client receives."""
        self.requests.feed(wire(ClientConnection("me").request(request, version)))
        return self.responses.feed(wire(ServerConnection().respond(RequestHeader(), response, version)))


def wire(parts: object) -> bytes:
    return b"".join(bytes(part) for part in parts)  # type: ignore[attr-defined]


def in_pieces(feed: Callable[[bytes], bytes], data: bytes, cuts: list[int]) -> bytes:
    return b"".join(feed(data[start:end]) for start, end in pairwise([0, *sorted(cuts), len(data)]))


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_streams_return_the_bytes_that_they_receive(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(ANSWERED)), max_size=4))
    pair = Pair()
    for side, feed in (("request", pair.requests.feed), ("response", pair.responses.feed)):
        stream = b"".join(ANSWERED[name][side].wire for name in names)
        assert in_pieces(feed, stream, data.draw(st.lists(st.integers(0, len(stream)), max_size=8))) == stream
    assert not pair.warnings
    assert len([seen for seen in pair.seen if seen.request is None and seen.frame]) == len(names)


@pytest.mark.parametrize("name", ANSWERED)
def test_a_response_is_decoded_like_its_request(name: str) -> None:
    pair = Pair()
    pair.requests.feed(ANSWERED[name]["request"].wire)
    pair.responses.feed(ANSWERED[name]["response"].wire)
    request, response = pair.seen
    assert request.frame is not None and response.frame is not None
    assert request.frame.decode() == ANSWERED[name]["request"][2:]
    assert response.frame.decode() == ANSWERED[name]["response"][2:]
    assert response.request is not None and response.elapsed is not None


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_invalid_bytes_are_forwarded_unchanged(garbage: bytes, cuts: list[int]) -> None:
    for side in ("requests", "responses"):
        stream = getattr(Pair(), side)
        passed = in_pieces(stream.feed, garbage, [min(cut, len(garbage)) for cut in cuts])
        assert passed + stream.rest() == garbage


def test_invalid_frames_are_reported_once() -> None:
    metadata = GOLDEN["metadata_v0_kafka-0.8.2.2"]["request"].wire
    for garbage in (b"GET / HTTP/1.1\r\n", b"\xff\xff\xff\xff", b"\0\0\0\2ab"):
        pair = Pair()
        assert pair.requests.feed(metadata + garbage) == metadata + garbage
        assert pair.requests.feed(metadata) == metadata
        assert len(pair.seen) == len(pair.warnings) == 1
        assert pair.warnings[0].startswith(f"byte {len(metadata)}: not a frame of Kafka's protocol")


def test_only_the_beginning_of_a_large_frame_is_stored() -> None:
    pair = Pair()
    head = wire(ClientConnection("me").request(ProduceRequest(acks=1), 9))[4:]
    large = (MAX_KEPT + 1000).to_bytes(4, "big") + head + bytes(MAX_KEPT + 1000 - len(head))
    assert in_pieces(pair.requests.feed, large, [5, 100, 5000]) == large
    (seen,) = pair.seen
    assert seen.frame is not None
    assert (seen.size, len(seen.frame.wire)) == (MAX_KEPT + 1004, MAX_KEPT)


def test_a_large_frame_is_forwarded_while_it_arrives() -> None:
    pair = Pair()
    pair.requests.feed(wire(ClientConnection("me").request(FetchRequest(), 12)))
    beginning = (MAX_KEPT * 2).to_bytes(4, "big") + bytes(1000)
    assert pair.responses.feed(beginning) == beginning


def test_a_produce_without_acks_has_no_answer() -> None:
    pair = Pair()
    client = ClientConnection("me")
    pair.requests.feed(wire(client.request(ProduceRequest(acks=0), 9)))
    pair.requests.feed(wire(client.request(MetadataRequest(), 1)))
    pair.responses.feed(wire(ServerConnection().respond(RequestHeader(correlation_id=1), MetadataResponse(), 1)))
    assert [seen.note for seen in pair.seen] == ["no response requested", "", ""]
    assert pair.seen[2].request is not None and pair.seen[2].request.frame.api == "Metadata"


def test_a_response_without_a_request() -> None:
    pair = Pair()
    answer = wire(ServerConnection().respond(RequestHeader(correlation_id=7), MetadataResponse(), 1))
    assert pair.responses.feed(answer) == answer
    assert pair.seen[0].note == "a response without a known request"


def test_the_answer_to_a_version_of_api_versions_that_the_broker_does_not_know() -> None:
    pair = Pair()
    pair.requests.feed(bytes.fromhex("0000000c 0012 7fff 00000000 0002 6d65"))
    pair.responses.feed(wire(ServerConnection().respond(RequestHeader(), ApiVersionsResponse(error_code=35), 0)))
    assert pair.seen[0].frame is not None and pair.seen[0].frame.message is None
    assert pair.seen[1].frame is not None and pair.seen[1].frame.decode()[1].error_code == 35


# Addresses


def moved(address: Address, _: bool) -> Address:
    return Address("proxy", address.port + 1)


@pytest.mark.parametrize("version", MetadataResponse.versions)
def test_addresses_in_metadata(version: int) -> None:
    pair = Pair(moved)
    brokers = [MetadataBroker(node_id=n, host="broker", port=9092 + 10 * n) for n in range(2)]
    passed = pair.exchange(MetadataRequest(topics=[]), MetadataResponse(brokers=brokers), version)
    client = ClientConnection("me")
    client.request(MetadataRequest(topics=[]), version)
    _, answer = client.receive(memoryview(passed)[4:])
    assert isinstance(answer, MetadataResponse)
    assert [(broker.host, broker.port) for broker in answer.brokers] == [("proxy", 9093), ("proxy", 9103)]
    assert pair.seen[1].note == "broker:9092 becomes proxy:9093, broker:9102 becomes proxy:9103"


@pytest.mark.parametrize("version", FindCoordinatorResponse.versions)
def test_addresses_of_coordinators(version: int) -> None:
    coordinator = {"host": "broker", "port": 9092}
    found = FindCoordinatorResponse.Coordinator(**coordinator)
    response = FindCoordinatorResponse(coordinators=[found]) if version > 3 else FindCoordinatorResponse(**coordinator)
    passed = Pair(moved).exchange(FindCoordinatorRequest(), response, version)
    assert b"proxy" in passed and b"broker" not in passed


def test_addresses_of_a_cluster_and_of_new_leaders() -> None:
    node = {"host": "broker", "port": 9092}
    cluster = DescribeClusterResponse(brokers=[DescribeClusterResponse.DescribeClusterBroker(**node)])
    assert b"proxy" in Pair(moved).exchange(DescribeClusterRequest(), cluster, 1)
    leader = FetchResponse(node_endpoints=[FetchResponse.NodeEndpoint(**node)])
    assert b"proxy" in Pair(moved).exchange(FetchRequest(), leader, 16)


def test_a_coordinator_that_is_not_there_has_no_address() -> None:
    pair = Pair(moved)
    pair.exchange(FindCoordinatorRequest(), FindCoordinatorResponse(error_code=15, host="", port=-1), 1)
    assert pair.seen[1].note == ""


def test_whether_a_broker_is_the_only_one() -> None:
    answers: list[bool] = []

    def address(address: Address, is_only: bool) -> Address:
        answers.append(is_only)
        return address

    for count in (1, 2):
        brokers = [MetadataBroker(host="broker", port=9092 + n) for n in range(count)]
        Pair(address).exchange(MetadataRequest(topics=[]), MetadataResponse(brokers=brokers), 1)
    assert answers == [True, False, False]


def test_a_response_that_cannot_be_decoded_is_forwarded() -> None:
    pair = Pair(moved)
    pair.requests.feed(wire(ClientConnection("me").request(MetadataRequest(topics=[]), 1)))
    broken = bytes.fromhex("00000008 00000000 00000009")
    assert pair.responses.feed(broken) == broken
    assert pair.seen[1].note == "not decoded, so its addresses stay as they are"
