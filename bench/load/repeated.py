"""Load from many connections at once, by one thread: frames that were made before, and answers that are counted.

A client that makes its requests would be the bottleneck long before the broker.  So each connection sends the same
Produce (or Fetch) again and again, some in flight as Kafka's clients have it, and of an answer only the length is read.
The first answer of each connection is decoded, to see that it is no error.
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
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.schema import Request
from hmb.records import Record, encode_batch

from .. import peers

IN_FLIGHT = 5  # Kafka's max.in.flight.requests.per.connection
PRODUCE_VERSION = 9
LENGTH = 4  # bytes in front of a frame
BLOCK = 256 * 1024
PATIENCE = 30.0  # seconds for a new topic
NOT_YET = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def produce_request(topic: str, partition: int, records: int, size: int) -> ProduceRequest:
    """Records of zeros, one batch, acks=1."""
    batch = encode_batch([Record(value=bytes(size)) for _ in range(records)])
    data = ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=memoryview(batch))
    wanted = ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[wanted])


@dataclass
class Line:
    """One connection: what it sends, and what it still has to get."""

    socket: socket.socket
    frame: bytes
    unsent: bytes = b""
    missing: int = 0  # bytes of the answer that is coming
    head: bytes = b""  # part of an answer's length
    answers: int = 0
    late: list[float] = field(default_factory=list)  # seconds of each request
    begun: list[float] = field(default_factory=list)  # when those in flight were sent, oldest first


class Load:
    """Connections to one broker that all do the same."""

    def __init__(self, bootstrap: str, requests: Sequence[tuple[Request, int]], in_flight: int = IN_FLIGHT) -> None:
        """One connection for each request (with its version).  Raises OSError, PeerFailed."""
        self._selector = selectors.DefaultSelector()
        self._in_flight = in_flight
        self.lines = [self._connect(parse_servers(bootstrap)[0], *each) for each in requests]

    def run(self, seconds: float) -> int:
        """How many answers came in that time."""
        before = sum(line.answers for line in self.lines)
        for line in self.lines:
            while len(line.begun) < self._in_flight:
                self._send(line)
        end = time.perf_counter() + seconds
        while (now := time.perf_counter()) < end:
            for key, events in self._selector.select(end - now):
                line = cast(Line, key.data)
                if events & selectors.EVENT_WRITE:
                    self._flush(line)
                if events & selectors.EVENT_READ:
                    self._receive(line)
        return sum(line.answers for line in self.lines) - before

    def latencies(self) -> list[float]:
        """Seconds from request to answer, sorted."""
        return sorted(late for line in self.lines for late in line.late)

    def close(self) -> None:
        for line in self.lines:
            line.socket.close()
        self._selector.close()

    def _connect(self, address: tuple[str, int], request: Request, version: int) -> Line:
        client = socket.create_connection(address, timeout=30)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        frame = first_answer(client, request, version)
        client.setblocking(False)
        line = Line(client, frame)
        self._selector.register(client, selectors.EVENT_READ, line)
        return line

    def _send(self, line: Line) -> None:
        line.begun.append(time.perf_counter())
        line.unsent += line.frame
        self._flush(line)

    def _flush(self, line: Line) -> None:
        try:
            sent = line.socket.send(line.unsent) if line.unsent else 0
        except BlockingIOError:
            sent = 0
        line.unsent = line.unsent[sent:]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if line.unsent else 0)
        if self._selector.get_key(line.socket).events != wanted:
            self._selector.modify(line.socket, wanted, line)

    def _receive(self, line: Line) -> None:
        block = line.socket.recv(BLOCK)
        if not block:
            raise peers.PeerFailed("the broker closed a connection")
        block, line.head = line.head + block, b""
        while block:
            if not line.missing:
                if len(block) < LENGTH:
                    line.head = block
                    return
                line.missing, block = int.from_bytes(block[:LENGTH]), block[LENGTH:]
            taken = min(line.missing, len(block))
            line.missing, block = line.missing - taken, block[taken:]
            if not line.missing:
                line.answers += 1
                line.late.append(time.perf_counter() - line.begun.pop(0))
                self._send(line)


def first_answer(client: socket.socket, request: Request, version: int) -> bytes:
    """Send a request until its answer is no error; the frame.  Kafka tells of a new topic before it leads it."""
    protocol, stream = ClientConnection("load"), client.makefile("rb")
    deadline = time.monotonic() + PATIENCE
    while True:
        frame = b"".join(cast("list[bytes]", protocol.request(request, version)))
        client.sendall(frame)
        size = int.from_bytes(stream.read(LENGTH))
        _, response = protocol.receive(memoryview(stream.read(size)))
        errors = set(errors_of(response))
        if not errors & NOT_YET or time.monotonic() > deadline:
            refuse_errors(response)
            return frame
        time.sleep(0.05)


def errors_of(response: Any) -> list[int]:
    """The error codes in the answer to a Produce or a Fetch."""
    topics = [getattr(topic, "partition_responses", None) or topic.partitions for topic in response.responses]
    return [partition.error_code for topic in topics for partition in topic if partition.error_code]


def refuse_errors(response: Any) -> None:
    """PeerFailed if a Produce or a Fetch was answered with an error."""
    for code in errors_of(response):
        raise peers.PeerFailed(f"the broker answers {ErrorCode(code).name}")
