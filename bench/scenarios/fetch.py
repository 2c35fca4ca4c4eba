"""Compares full fetches with fetches in a fetch session (KIP-227), when no partition has new records.

These commands are examples:
    hmb bench fetch                                 # 1, 10, 100 and 1000 partitions
    hmb bench fetch --partitions 500 --seconds 5

When a consumer has read all records, it continues to send Fetch requests, and gets empty responses. A full
fetch names every partition. In a fetch session, the broker remembers the partitions and their fetch offsets. A
request then names only the partitions whose fetch offset has changed. In this benchmark, no fetch offset
changes. A request in the session therefore names no partition:
    full           FetchRequest  topics: 1000 partitions     about 20 KB
    in a session   FetchRequest  session_id, epoch           about 60 B

The client alternately sends full fetches and fetches in a fetch session, on one connection. The cost of a fetch is the
CPU time of the broker's process. The CPU time of the client and of other programs is not included.

Besides the CPU time, the benchmark counts the bytes of each request and each response. The count includes the four
bytes with the size of a message.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import click

from hmb.protocol.connection import ClientConnection
from hmb.protocol.framing import read_frame
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.schema import Request

from .. import peers
from ..measurement import POSITIVE, CommaList, Measurement, scenario
from ..report.view import Column, SampleView

SLICES = 4  # A run has four parts. Each part first measures fetches without a session, then fetches in a session.
FETCHES_PER_LOOK = 20  # The client looks at the clock only after this number of fetches.
FINAL_EPOCH = -1
FULL, IN_SESSION = "full", "in a session"
MAX_BYTES = 1 << 20
VIEW = SampleView(
    columns=(
        Column("broker_cpu_us_per_fetch", "broker CPU, us/fetch", compare=True),
        Column("bytes_per_fetch", "bytes", spread=False, compare=True, digits=0),
    ),
    title=lambda _: "A fetch of partitions without new records",
    cell=lambda sample: f"{sample.parameters['partitions']:,} partitions",
    contestant=lambda sample: str(sample.parameters["kind"]),
    reference=0,  # Index 0: the table compares all results with the results of full fetches.
)


@dataclass
class FetchCost:
    """The cost of one kind of fetch: full fetches, or fetches in a session.

    `cpu_seconds` is the broker's CPU time for all fetches together. `bytes` is the size of one request and its
    response.
    """

    fetches: int = 0
    cpu_seconds: float = 0.0
    bytes: int = 0

    @property
    def figures(self) -> dict[str, float]:
        cpu = self.cpu_seconds / self.fetches * 1e6
        return {"broker_cpu_us_per_fetch": cpu, "bytes_per_fetch": float(self.bytes)}


class FrameClient:
    """A connection that sends encoded requests, and does not decode the responses."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((peers.HOST, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb")
        self._connection = ClientConnection("bench")

    def frame(self, request: Request, version: int) -> bytes:
        return b"".join(cast("list[bytes]", self._connection.request(request, version)))

    def exchange(self, frame: bytes) -> memoryview:
        """Send an encoded request, and return the encoded response. Raises PeerFailed."""
        self._socket.sendall(frame)
        response = read_frame(self._stream, 1 << 30)
        if response is None:
            raise peers.PeerFailed("the broker closed the connection")
        return response

    def send(self, request: Request, version: int) -> Any:
        """Send a request, and return its decoded response.

        Do not call `send` if you have called `frame` yourself. `frame` adds the request to the queue of `_connection`.
        Only `send` removes requests from this queue, the oldest first. So `send` would compare its response with your
        older request, and raise ProtocolError.
        """
        return self._connection.receive(self.exchange(self.frame(request, version)))[1]


def measure(partitions: int, seconds: float) -> tuple[FetchCost, FetchCost]:
    """Start a broker. Return the cost of fetches without a fetch session, and the cost of fetches in a session."""
    with peers.Hmb() as broker:
        client = FrameClient(broker.port)
        request = full_request(client, partitions)
        version = FetchRequest.versions[-1]
        request.session_epoch = 0
        session = client.send(request, version).session_id
        request.session_epoch = FINAL_EPOCH
        full_frame = client.frame(request, version)
        full, in_session = FetchCost(), FetchCost()
        session_frames = frames_in_session(client, session, version)
        for _ in range(SLICES):
            spend(client, broker.pid, iter(lambda: full_frame, b""), seconds / SLICES, full)
            spend(client, broker.pid, session_frames, seconds / SLICES, in_session)
        return full, in_session


def full_request(client: FrameClient, partitions: int) -> FetchRequest:
    """Create a topic, and return a Fetch request that names all its partitions."""
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=partitions, replication_factor=1)
    client.send(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
    metadata = client.send(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), 12)
    partition = FetchRequest.FetchTopic.FetchPartition
    numbers = [partition(partition=number, partition_max_bytes=MAX_BYTES) for number in range(partitions)]
    fetched = FetchRequest.FetchTopic(topic_id=metadata.topics[0].topic_id, partitions=numbers)
    return FetchRequest(max_bytes=MAX_BYTES, topics=[fetched])


def frames_in_session(client: FrameClient, session: int, version: int) -> Iterator[bytes]:
    """Yield the encoded Fetch requests of a session. The session epoch increases by one with each request."""
    epoch = 0
    while True:
        epoch += 1
        yield client.frame(FetchRequest(max_bytes=MAX_BYTES, session_id=session, session_epoch=epoch), version)


def spend(client: FrameClient, pid: int, frames: Iterator[bytes], seconds: float, cost: FetchCost) -> None:
    """Send fetches for `seconds` seconds, and add their cost to `cost`. `pid` is the process id of the broker."""
    end, before = time.monotonic() + seconds, peers.cpu_seconds(pid)
    while time.monotonic() < end:
        for _ in range(FETCHES_PER_LOOK):
            frame = next(frames)
            cost.bytes = len(frame) + 4 + len(client.exchange(frame))
        cost.fetches += FETCHES_PER_LOOK
    cost.cpu_seconds += peers.cpu_seconds(pid) - before


@scenario("fetch", VIEW)
@click.option(
    "--partitions", type=CommaList(POSITIVE), default=[1, 10, 100, 1_000], metavar="N,N,...",
    help="Numbers of partitions.  [default: 1,10,100,1000]",
)  # fmt: skip
@click.option("--seconds", type=float, default=4.0, show_default=True, help="Duration of each run in seconds.")
def command(measurement: Measurement, partitions: list[int], seconds: float) -> None:
    """Measure the CPU time that HMB's broker uses for a fetch without new records.

    A full fetch names all partitions. A fetch in a fetch session names none. The command measures both kinds.
    """
    progress = measurement.progress(measurement.round_count * len(partitions))
    for number in range(measurement.round_count):
        for count in partitions:
            progress.step(f"round {number + 1}, {count} partitions")
            for kind, cost in zip((FULL, IN_SESSION), measure(count, seconds), strict=True):
                measurement.add(number, peers.Hmb.name, "frames", {"partitions": count, "kind": kind}, cost.figures)
