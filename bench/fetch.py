"""What a fetch of many partitions with nothing new costs the broker, in full and in a session (KIP-227).

    python -m hmb.bench.fetch                              # 1, 10, 100 and 1000 partitions
    python -m hmb.bench.fetch --partitions 500 --seconds 5

This is what a consumer asks all day.  The two kinds take turns, in rounds, on one connection; the cost is the CPU time
of the broker's process (Linux), so that the machine's other work and the client's own count little.  Bytes are those of
a request and its answer, frames included.
"""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from hmb.protocol.connection import ClientConnection
from hmb.protocol.framing import read_frame
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.schema import Request, Response

from .peers import HOST, Hmb, cpu_seconds

ROUNDS = 4
AT_ONCE = 20  # requests between two looks at the clock
FINAL_EPOCH = -1
LIMIT = 1 << 20  # bytes of records that a client takes


@dataclass
class Cost:
    """Of one kind of fetch."""

    fetches: int = 0
    cpu: float = 0.0  # seconds
    bytes: int = 0  # of one request and its answer

    def __str__(self) -> str:
        return f"{self.cpu / self.fetches * 1e6:>9.0f} us {self.bytes:>9} B"


class Client:
    """Frames to a broker and back; the answers to fetches are not looked into."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb")
        self._connection = ClientConnection("bench")

    def frame(self, request: Request, version: int) -> bytes:
        return b"".join(cast("list[bytes]", self._connection.request(request, version)))

    def exchange(self, frame: bytes) -> memoryview:
        self._socket.sendall(frame)
        answer = read_frame(self._stream, 1 << 30)
        assert answer is not None, "the broker closed the connection"
        return answer

    def ask(self, request: Request, version: int) -> Response:
        """Only before the first `frame`: their answers are awaited in order."""
        return self._connection.receive(self.exchange(self.frame(request, version)))[1]


def measure(partitions: int, seconds: float) -> tuple[Cost, Cost]:
    """The cost of a full fetch and of one in a session."""
    with Hmb() as broker:
        client = Client(broker.port)
        request = _request(client, partitions)
        version = FetchRequest.versions[-1]
        request.session_epoch = 0
        session = client.ask(request, version).session_id  # type: ignore[attr-defined]
        request.session_epoch = FINAL_EPOCH
        full_frame = client.frame(request, version)
        full, incremental = Cost(), Cost()
        in_session = _frames_in_session(client, session, version)
        for _ in range(ROUNDS):
            _spend(client, broker.pid, iter(lambda: full_frame, b""), seconds / ROUNDS, full)
            _spend(client, broker.pid, in_session, seconds / ROUNDS, incremental)
        return full, incremental


def _request(client: Client, partitions: int) -> FetchRequest:
    """A full fetch of a new topic."""
    wanted = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=partitions, replication_factor=1)
    client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=60_000), 7)
    found = client.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), 12)
    partition = FetchRequest.FetchTopic.FetchPartition
    return FetchRequest(
        max_bytes=LIMIT,
        topics=[
            FetchRequest.FetchTopic(
                topic_id=found.topics[0].topic_id,  # type: ignore[attr-defined]
                partitions=[partition(partition=n, partition_max_bytes=LIMIT) for n in range(partitions)],
            )
        ],
    )


def _frames_in_session(client: Client, session: int, version: int) -> Iterator[bytes]:
    epoch = 0
    while True:
        epoch += 1
        yield client.frame(FetchRequest(max_bytes=LIMIT, session_id=session, session_epoch=epoch), version)


def _spend(client: Client, pid: int, frames: Iterator[bytes], seconds: float, cost: Cost) -> None:
    end, before = time.monotonic() + seconds, cpu_seconds(pid)
    while time.monotonic() < end:
        for _ in range(AT_ONCE):
            frame = next(frames)
            cost.bytes = len(frame) + 4 + len(client.exchange(frame))
        cost.fetches += AT_ONCE
    cost.cpu += cpu_seconds(pid) - before


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Fetch from many quiet partitions.")
    parser.add_argument("--partitions", type=int, nargs="*", default=[1, 10, 100, 1_000])
    parser.add_argument("--seconds", type=float, default=4.0, help="for each kind of fetch (default: 4)")
    options = parser.parse_args(arguments)
    print(f"{'partitions':>10}{'full fetch':>23}{'in a session':>24}{'ratio':>9}")
    for partitions in options.partitions:
        full, incremental = measure(partitions, options.seconds)
        ratio = (full.cpu / full.fetches) / (incremental.cpu / incremental.fetches)
        print(f"{partitions:>10}{full!s:>23}{incremental!s:>24}{ratio:>9.1f}", flush=True)


if __name__ == "__main__":
    main()
