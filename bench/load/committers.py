"""Committers: connections that send OffsetCommit requests as fast as possible, and use little CPU time.

When a committer is created, it encodes one OffsetCommit request as a template. For each commit, the committer
writes the next offset into the template, and sends the bytes. It decodes only the error code of each response:
    request    ... | int64 committed_offset | ...     8 bytes change, and the correlation id stays the same
    response   ... | int16 error_code | 3 bytes: the empty tagged fields of partition, topic and response

The test `tests/conformance/kills/commits.py` uses committers, and kills the broker while they send commits.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from hmb.client import Connection
from hmb.protocol.connection import ClientConnection
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest

from .. import peers
from ..peers import topics
from ..report.distribution import percentile

TOPIC = "commits"
VERSION = 9  # the last version of OffsetCommit and OffsetFetch with topic names instead of topic ids
OFFSET = struct.Struct(">q")
PLACEHOLDER = OFFSET.pack(0x5A5A5A5A5A5A5A5A)  # These bytes mark the position of the offset in the template.
RECEIVE_BYTES = 1 << 16
TIMEOUT = 30.0  # seconds


class Committer:
    """A connection with a group of its own. It commits the offsets 1, 2, 3 ... of one partition for this group."""

    def __init__(self, port: int, number: int, in_flight: int, first: int = 0) -> None:
        """Connect to the broker. The first commit will commit the offset `first` + 1.

        Each later commit increases the offset by 1. At most `in_flight` commits are in flight (sent, but not yet
        answered) at the same time.
        """
        self.group = f"commits-{number}"
        self.number = number
        self.socket = socket.create_connection((peers.HOST, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.acked = self.sent = first
        self._in_flight = in_flight
        self._sent_at: deque[float] = deque()
        self._received = b""
        self._start, self._end = _template(self.group, number).split(PLACEHOLDER)

    def begin(self) -> None:
        """Send as many commits as may wait for responses at the same time."""
        self.send(self._in_flight, time.perf_counter())

    def send(self, count: int, now: float) -> None:
        """Send the next `count` commits with one system call. `now` is the present time."""
        first = self.sent + 1
        self.sent += count
        requests = [self._start + OFFSET.pack(offset) + self._end for offset in range(first, self.sent + 1)]
        self._sent_at.extend([now] * count)
        self.socket.sendall(b"".join(requests))

    def receive(self, latencies: list[float]) -> int:
        """Read the responses that have arrived, and return their number.

        Append the latency (s) of each response to `latencies`. Raises PeerFailed if a response contains an error or if
        the broker closes the connection.
        """
        received = self.socket.recv(RECEIVE_BYTES)
        if not received:
            raise peers.PeerFailed("the broker closed a connection")
        data = self._received + received
        now, position, count = time.perf_counter(), 0, 0
        while position + 4 <= len(data) and (
            end := position + 4 + int.from_bytes(data[position : position + 4])
        ) <= len(data):
            error_code = int.from_bytes(data[end - 5 : end - 3], signed=True)
            if error_code:
                raise peers.PeerFailed(f"the response to a commit contains the error {ErrorCode(error_code).name}")
            latencies.append(now - self._sent_at.popleft())
            position, count = end, count + 1
        self._received = data[position:]
        self.acked += count
        return count


def _template(group: str, number: int) -> bytes:
    """Return an encoded OffsetCommit request for one group. In place of the offset, the bytes contain PLACEHOLDER."""
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    (offset,) = OFFSET.unpack(PLACEHOLDER)
    partition = topic.OffsetCommitRequestPartition(
        partition_index=number, committed_offset=offset, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=-1, topics=[topic(name=TOPIC, partitions=[partition])]
    )
    return b"".join(bytes(part) for part in ClientConnection("commits").request(request, VERSION))  # type: ignore[arg-type]


def prepare(broker: peers.Peer, connections: int) -> None:
    """Create the topic TOPIC, and wait until the broker accepts offset commits. Raises KafkaError, PeerFailed."""
    topics.create(broker.bootstrap, TOPIC, partitions=connections)
    await_coordinator(broker, connections)


def await_coordinator(broker: peers.Peer, connections: int) -> None:
    """Wait until the broker is the coordinator of all groups. Raises PeerFailed after TIMEOUT seconds."""
    groups = [f"commits-{number}" for number in range(connections)]
    deadline = time.monotonic() + TIMEOUT
    with Connection(peers.HOST, broker.port) as connection:
        while any(
            each.error_code for each in connection.send(FindCoordinatorRequest(coordinator_keys=groups), 4).coordinators
        ) or None in committed(connection, groups):
            if time.monotonic() > deadline:
                raise peers.PeerFailed(f"{broker.name} did not become the coordinator of the groups in {TIMEOUT:g} s")
            time.sleep(0.05)


def committed(connection: Connection, groups: Sequence[str]) -> list[int | None]:
    """Return the committed offset of each group, or None if the response contains an error for this group."""
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    requested = [
        group(group_id=name, topics=[group.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[number])])
        for number, name in enumerate(groups)
    ]
    found = connection.send(OffsetFetchRequest(groups=requested), VERSION).groups
    return [None if each.error_code else each.topics[0].partitions[0].committed_offset for each in found]


class CommitRates(NamedTuple):
    """The results of one run: commits per second, latencies, and the broker's CPU time."""

    commits_per_second: float
    p50_ms: float
    p99_ms: float
    broker_cpu_us_per_commit: float


def commit(broker: peers.Peer, connections: int, in_flight: int, seconds: float) -> CommitRates:
    """Send commits on all connections for `seconds` seconds, and return the results.

    At the end, compare the committed offset of each group with the last offset that the broker has acknowledged.
    Raises PeerFailed if the two offsets differ, or if a commit fails.
    """
    latencies: list[float] = []
    cpu = peers.cpu_seconds(broker.pid)
    committers = [Committer(broker.port, number, in_flight) for number in range(connections)]
    started = time.perf_counter()
    _drive(broker, committers, started + seconds, latencies)
    elapsed, cpu = time.perf_counter() - started, peers.cpu_seconds(broker.pid) - cpu
    for each in committers:
        each.socket.close()
    with Connection(peers.HOST, broker.port) as connection:
        if committed(connection, [each.group for each in committers]) != [each.acked for each in committers]:
            raise peers.PeerFailed(f"{broker.name} acknowledged commits that it does not return")
    latencies.sort()
    p50, p99 = (percentile(latencies, share) * 1e3 for share in (0.5, 0.99))
    return CommitRates(len(latencies) / elapsed, p50, p99, cpu / len(latencies) * 1e6)


def _drive(broker: peers.Peer, committers: Sequence[Committer], end: float, latencies: list[float]) -> None:
    """Send commits with all committers until the time `end`. Then wait until all responses have arrived."""
    with selectors.DefaultSelector() as selector:
        for each in committers:
            selector.register(each.socket, selectors.EVENT_READ, each)
            each.begin()
        in_flight = sum(each.sent - each.acked for each in committers)
        while in_flight:
            ready = selector.select(TIMEOUT)
            if not ready:
                raise peers.PeerFailed(f"{broker.name} sent no response for {TIMEOUT:g} s")
            for key, _ in ready:
                count = key.data.receive(latencies)
                now = time.perf_counter()
                if count and now < end:
                    key.data.send(count, now)
                else:
                    in_flight -= count
