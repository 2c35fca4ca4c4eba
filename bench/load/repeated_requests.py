"""One thread that sends the same request again and again on many connections, and counts the responses.

If the client encoded every request, the benchmark would measure the client instead of the broker. A `Load`
therefore encodes one request for each connection, and sends the same bytes again and again. As in Kafka's
clients, several requests of a connection are in flight.

A `Load` decodes responses only while it opens its connections, to check that its requests succeed. After that,
it reads only the size of each response, and skips the bytes that follow:
    request   int32 size | header with correlation id 1 | body      the same bytes each time
    response  int32 size | size bytes, skipped
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from hmb.client.metadata import parse_servers
from hmb.protocol.connection import ClientConnection
from hmb.protocol.enums import Acks
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.schema import Request
from hmb.records import Record, encode_batch

from ..errors import PeerFailed

IN_FLIGHT = 5  # requests in flight on one connection, as with Kafka's default of max.in.flight.requests.per.connection
PRODUCE_VERSION = 9
SIZE_BYTES = 4  # Each request and each response begins with its size, which has 4 bytes.
RECEIVE_BYTES = 256 * 1024
NEW_TOPIC_TIMEOUT = 30.0  # how long to wait until a new topic has leaders (seconds)
TRANSIENT = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def produce_request(topic: str, partition: int, records: int, size: int) -> ProduceRequest:
    """Return a Produce request with acks=1 and one batch of `records` records.

    The value of each record is `size` bytes long. All these bytes are 0.
    """
    batch = encode_batch([Record(value=bytes(size)) for _ in range(records)])
    data = ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=memoryview(batch))
    of_topic = ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    return ProduceRequest(acks=Acks.LEADER, timeout_ms=30_000, topic_data=[of_topic])


@dataclass
class LoadedConnection:
    """A connection to a broker, on which the benchmark sends the same encoded request (`frame`) again and again."""

    socket: socket.socket
    frame: bytes
    unsent: bytes = b""
    missing: int = 0  # the number of bytes of the current response that have not arrived yet
    partial_size: bytes = b""  # the first bytes of a response's size, if the size has arrived only in part
    responses: int = 0
    latencies: list[float] = field(default_factory=list)  # seconds
    sent_at: list[float] = field(default_factory=list)  # the send times of the requests in flight, oldest first


class Load:
    """Several connections to one broker. Each connection sends its request again and again."""

    def __init__(self, bootstrap: str, requests: Sequence[tuple[Request, int]], in_flight: int = IN_FLIGHT) -> None:
        """For each pair (request, version), connect, and check that the request works. Raises OSError, PeerFailed."""
        self._selector = selectors.DefaultSelector()
        self._in_flight = in_flight
        self.connections = [self._connect(parse_servers(bootstrap)[0], *each) for each in requests]

    def run(self, seconds: float) -> int:
        """Send requests on all connections for `seconds` seconds. Return the number of responses that arrived."""
        before = sum(connection.responses for connection in self.connections)
        for connection in self.connections:
            while len(connection.sent_at) < self._in_flight:
                self._send(connection)
        end = time.perf_counter() + seconds
        while (now := time.perf_counter()) < end:
            for key, events in self._selector.select(end - now):
                connection = cast(LoadedConnection, key.data)
                if events & selectors.EVENT_WRITE:
                    self._flush(connection)
                if events & selectors.EVENT_READ:
                    self._receive(connection)
        return sum(connection.responses for connection in self.connections) - before

    def latencies(self) -> list[float]:
        """Return the latencies of all requests (seconds), in ascending order."""
        return sorted(latency for connection in self.connections for latency in connection.latencies)

    def forget_latencies(self) -> None:
        """Remove all latencies that were recorded until now, for example during a warm-up."""
        for connection in self.connections:
            connection.latencies.clear()

    def close(self) -> None:
        for connection in self.connections:
            connection.socket.close()
        self._selector.close()

    def _connect(self, address: tuple[str, int], request: Request, version: int) -> LoadedConnection:
        client = socket.create_connection(address, timeout=30)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        frame = first_exchange(client, request, version)
        client.setblocking(False)
        connection = LoadedConnection(client, frame)
        self._selector.register(client, selectors.EVENT_READ, connection)
        return connection

    def _send(self, connection: LoadedConnection) -> None:
        connection.sent_at.append(time.perf_counter())
        connection.unsent += connection.frame
        self._flush(connection)

    def _flush(self, connection: LoadedConnection) -> None:
        try:
            sent = connection.socket.send(connection.unsent) if connection.unsent else 0
        except BlockingIOError:
            sent = 0
        connection.unsent = connection.unsent[sent:]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.unsent else 0)
        if self._selector.get_key(connection.socket).events != events:
            self._selector.modify(connection.socket, events, connection)

    def _receive(self, connection: LoadedConnection) -> None:
        """Read the bytes that have arrived. For each complete response, count it and send a new request."""
        received = connection.socket.recv(RECEIVE_BYTES)
        if not received:
            raise PeerFailed("the broker closed a connection")
        data, connection.partial_size = connection.partial_size + received, b""
        while data:
            if not connection.missing:
                if len(data) < SIZE_BYTES:
                    connection.partial_size = data
                    return
                connection.missing, data = int.from_bytes(data[:SIZE_BYTES]), data[SIZE_BYTES:]
            taken = min(connection.missing, len(data))
            connection.missing, data = connection.missing - taken, data[taken:]
            if not connection.missing:
                connection.responses += 1
                connection.latencies.append(time.perf_counter() - connection.sent_at.pop(0))
                self._send(connection)


def first_exchange(client: socket.socket, request: Request, version: int) -> bytes:
    """Send a request until its response contains no error. Return the encoded request.

    The partitions of a new topic have no leader for a short time. During this time, the response contains one of
    the errors in TRANSIENT, so the function sends the request again.

    Raises PeerFailed if such an error still occurs after NEW_TOPIC_TIMEOUT seconds. Any other error raises
    PeerFailed at once.
    """
    protocol, stream = ClientConnection("load"), client.makefile("rb")
    deadline = time.monotonic() + NEW_TOPIC_TIMEOUT
    while True:
        frame = b"".join(cast("list[bytes]", protocol.request(request, version)))
        client.sendall(frame)
        size = int.from_bytes(stream.read(SIZE_BYTES))
        _, response = protocol.receive(memoryview(stream.read(size)))
        errors = set(error_codes(response))
        if not errors & TRANSIENT or time.monotonic() > deadline:
            raise_errors(response)
            return frame
        time.sleep(0.05)


def error_codes(response: Any) -> list[int]:
    """Return the error codes in a Produce or a Fetch response."""
    topics = [getattr(topic, "partition_responses", None) or topic.partitions for topic in response.responses]
    return [partition.error_code for topic in topics for partition in topic if partition.error_code]


def raise_errors(response: Any) -> None:
    """Raise PeerFailed if a Produce or a Fetch response contains an error."""
    for code in error_codes(response):
        raise PeerFailed(f"the broker's response contains the error {ErrorCode(code).name}")
