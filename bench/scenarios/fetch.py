"""What a fetch of many partitions with nothing new costs the broker, in full and in a session (KIP-227).

    hmb bench fetch                              # 1, 10, 100 and 1000 partitions
    hmb bench fetch --partitions 500 --seconds 5

This is what a consumer asks all day.  The two kinds take turns, in rounds, on one connection; the cost is the CPU time
of the broker's process (Linux), so that the machine's other work and the client's own count little.  Bytes are those of
a request and its answer, frames included.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import cast

from hmb.protocol.connection import ClientConnection
from hmb.protocol.framing import read_frame
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.schema import Request, Response

from ..peers import HOST, Hmb, cpu_seconds
from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import Table, by_parameters, median, over, spread, text, told
from ..suite import add_suite_options, at_least_one, run

ROUNDS = 4
AT_ONCE = 20  # requests between two looks at the clock
FINAL_EPOCH = -1
FULL, IN_SESSION = "full", "in a session"
CPU = "broker_cpu_us_per_fetch"
LIMIT = 1 << 20  # bytes of records that a client takes


@dataclass
class Cost:
    """Of one kind of fetch."""

    fetches: int = 0
    cpu: float = 0.0  # seconds
    bytes: int = 0  # of one request and its answer

    @property
    def figures(self) -> dict[str, float]:
        return {CPU: self.cpu / self.fetches * 1e6, "bytes_per_fetch": float(self.bytes)}


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


def table(options: argparse.Namespace, _: ExitStack, samples: Samples) -> Iterator[str]:
    progress = Progress(options.repeat * len(options.partitions))
    for turn in range(options.repeat):
        for partitions in options.partitions:
            progress.step(f"turn {turn + 1}, {partitions} partitions")
            for kind, cost in zip((FULL, IN_SESSION), measure(partitions, options.seconds), strict=True):
                parameters: dict[str, float | str] = {"partitions": partitions, "kind": kind}
                samples.add(Sample("fetch", Hmb.name, "frames", turn, parameters, cost.figures))
    progress.end()
    yield from text(tables(samples.taken))


def tables(samples: Sequence[Sample]) -> list[Table]:
    rows = [["partitions", "full: CPU us", "bytes", "in a session: CPU us", "bytes", "full over it, CPU"]]
    for (partitions,), runs in by_parameters(samples, "partitions").items():
        kinds = by_parameters(runs, "kind")
        full, in_session = kinds[FULL,], kinds.get((IN_SESSION,), [])
        if not in_session:  # broken off
            continue
        costs = [(str(spread(kind, CPU)), median(kind, "bytes_per_fetch", form=",.0f")) for kind in (full, in_session)]
        rows.append([f"{partitions:,}", *costs[0], *costs[1], told(over(full, in_session, CPU))])
    return [Table("A fetch of partitions with nothing new: CPU time of the broker, bytes of request and answer", rows)]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hmb bench fetch", description="Fetch from many quiet partitions.")
    parser.add_argument("--partitions", type=at_least_one, nargs="+", default=[1, 10, 100, 1_000])
    parser.add_argument("--seconds", type=float, default=4.0, help="for each kind of fetch (default: 4)")
    add_suite_options(parser)
    return parser.parse_args()


def main() -> int:
    return run("fetch", parse(), table)


if __name__ == "__main__":
    sys.exit(main())
