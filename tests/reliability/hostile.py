"""A hostile client: it sends damaged and huge requests of all APIs and versions, and keeps silent connections open.

    python -m tests.reliability.hostile                            # the complete attack
    python -m tests.reliability.hostile --requests 5000 --seed 7   # only 5,000 requests; the random seed is 7

The complete attack sends 200,000 requests. Then it opens 200 connections with requests of 100 MB, and then 1,000
connections that are half-open or idle.

The broker runs in a separate process with its default settings. While the hostile client holds many connections open,
a well-behaved client repeatedly connects to the broker and sends a request.

The program reports a fault if the broker breaks one of the following three rules:

- The broker's log contains no traceback, and the broker still serves requests after the attack.
- The broker takes at most LIMIT seconds for a random request, and for a request of the well-behaved client. The time in
  which the broker waits for a processor does not count, so a busy machine does not change the result (stopwatch.py).
- The broker's resident memory is never above MAX_MEMORY.

The broker can delay its responses to requests of the APIs Fetch, ShareFetch, JoinGroup and SyncGroup. If one of these
responses takes longer than LIMIT seconds, the hostile client disconnects, and the program does not report a fault.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from hmb.broker.network.staged import WAITING_APIS
from hmb.protocol import primitives
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ClientConnection
from hmb.protocol.errors import KafkaError, ProtocolError
from hmb.protocol.framing import read_frame
from hmb.protocol.messages import API_KEYS, api_name, request_class, response_class
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.schema import Request, Response
from tests.reliability.broker_process import MIB, BrokerProcess, Probe, ask
from tests.reliability.mutations import mutate
from tests.reliability.requests import COMPACTED, LONGEST_STRING, TOPIC, Generator, Known
from tests.reliability.stopwatch import Stopwatch

LIMIT = 1.0  # seconds
MAX_MEMORY = 200 * MIB
FULL_SIZE = 100 * MIB  # bytes; the default of socket.request.max.bytes
SENTINEL = b"".join(part for part in ClientConnection("sentinel").request(ApiVersionsRequest(), 0) if part)


@dataclass
class Figures:
    """The counts and times of one attack."""

    sent: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)  # API -> seconds of its slowest request
    too_slow: list[str] = field(default_factory=list)

    def note(self, outcome: str, api: str, seconds: float, *, may_wait: bool = False) -> None:
        """Count one request of the API `api`, and record its time. `outcome` is the reaction of the broker."""
        self.sent += 1
        self.outcomes[outcome] += 1
        if may_wait:
            return
        self.slowest[api] = max(self.slowest.get(api, 0.0), seconds)
        if seconds > LIMIT:
            self.too_slow.append(f"request {self.sent}, {api}: {seconds:.2f} s ({outcome})")


class Attacker:
    """Sends requests one after the other. If the broker closes the connection, the attacker opens another one."""

    def __init__(self, broker: BrokerProcess, seed: int) -> None:
        self._broker = broker
        self._random = Random(seed)
        self._known = Known()
        self._connection: socket.socket | None = None
        self.figures = Figures()

    def attack(self, requests: int) -> None:
        """Send `requests` random requests. About half of them are mutated."""
        self._prepare()
        for _ in range(requests):
            self._send_one()
        self._leave()

    def _prepare(self) -> None:
        with self._broker.connect() as connection:
            New = CreateTopicsRequest.CreatableTopic
            compact = [New.CreatableTopicConfig(name="cleanup.policy", value="compact")]
            topics = [New(name=TOPIC, num_partitions=3, replication_factor=1)]
            topics.append(New(name=COMPACTED, num_partitions=1, replication_factor=1, configs=compact))
            ask(connection, CreateTopicsRequest(topics=topics), 5)
            for key_type in (0, 1):
                ask(connection, FindCoordinatorRequest(key="any", key_type=key_type), 1)
            found: Any = ask(connection, MetadataRequest(topics=None), 12)
        self._known.topic_ids = [topic.topic_id for topic in found.topics]

    def _send_one(self) -> None:
        random = self._random
        api_key = random.choice(API_KEYS)
        cls = request_class(api_key)
        version = random.choice(cls.versions)
        longest = LONGEST_STRING if random.random() < 0.98 else random.choice((LONGEST_STRING + 1, 100_000))
        generator = Generator(random, self._known, 2, longest, large_arrays=0.005)
        body = _body(generator.message(cls, version), version, random)
        if body is None:
            return  # This version cannot encode one of the long strings.
        if random.random() < 0.5:
            body = mutate(random, body)
        request = len(body).to_bytes(4, "big") + body + SENTINEL
        frames: list[memoryview] = []
        stopwatch = Stopwatch(self._broker.pid)  # The time does not include this client's encoding and decoding.
        outcome = self._exchange(request, frames, may_wait=api_key in WAITING_APIS)
        seconds = stopwatch.wall_seconds()
        if seconds > LIMIT:
            seconds = stopwatch.own_seconds()
        self.figures.note(outcome, api_name(api_key), seconds, may_wait=outcome == "waits" and api_key in WAITING_APIS)
        for frame in frames:
            self._learn(bytes(frame), api_key, version)

    def _exchange(self, request: bytes, frames: list[memoryview], *, may_wait: bool) -> str:
        """Send a request and then the sentinel request, which the broker always answers.

        Append to the list `frames` all responses that arrive before the response to the sentinel request.
        """
        if self._connection is None:
            self._connection = self._broker.connect()
        self._connection.settimeout(LIMIT if may_wait else 60.0)
        stream = self._connection.makefile("rb")
        try:
            self._connection.sendall(request)
            while (frame := read_frame(stream, 1 << 30)) is not None:
                if frame[:4] == SENTINEL[8:12]:
                    return "answered"
                frames.append(frame)
        except TimeoutError:
            self._leave()
            return "waits"
        except (OSError, ProtocolError):  # The broker has closed the connection while this side was sending.
            pass
        self._leave()
        return "closed"

    def _learn(self, frame: bytes, api_key: ApiKey, version: int) -> None:
        """Store the ids in a response, so that later requests can use ids that exist."""
        cls = response_class(api_key)
        with contextlib.suppress(ProtocolError, KafkaError):
            answer: Any = cls.decode(frame, version, 5 if version in cls.flexible_header else 4)
            for kind, name in (("members", "member_id"), ("producer_ids", "producer_id"), ("sessions", "session_id")):
                value = getattr(answer, name, None)
                if value and value != -1:
                    known = getattr(self._known, kind)
                    known.append(value)
                    del known[:-10]

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _body(request: Request, version: int, random: Random) -> bytes | None:
    """Return the bytes of a request and its header. Return None if this version cannot encode the request.

    The request SENTINEL follows this request on the connection. The function therefore chooses a correlation id that
    is not the id of SENTINEL. The ids in the responses show which response belongs to which request.
    """
    client = ClientConnection(random.choice(("hostile", "", "\u00e9" * 100, "c" * LONGEST_STRING)))
    client.request(ApiVersionsRequest(), 0)
    try:
        parts = client.request(request, version)
    except (KafkaError, ValueError):
        return None
    return b"".join(bytes(part) for part in parts if isinstance(part, bytes | bytearray | memoryview))[4:]


# Requests of 100 MB


def full_size_bodies() -> dict[str, bytes]:
    """Return the first bytes of several requests of 100 MB each.

    The rest of each request is zeros. The broker reads these zeros as empty strings or as the bytes of a batch.
    """
    def header(api_key: ApiKey, version: int, flexible: bool = False) -> bytes:
        return api_key.to_bytes(2) + version.to_bytes(2) + b"\0\0\0\7\0\1a" + (b"\0" if flexible else b"")

    topic, size = b"\0\1t", (FULL_SIZE - 100).to_bytes(4)
    return {
        "one batch": header(ApiKey.PRODUCE, 3) + b"\xff\xff\0\1\0\0\0\1\0\0\0\1" + topic + b"\0\0\0\1\0\0\0\0" + size,
        "tiny topics": header(ApiKey.METADATA, 1) + (40 * MIB).to_bytes(4),
        "tiny partitions": header(ApiKey.OFFSET_FETCH, 0) + b"\0\1g\0\0\0\1" + topic + (20 * MIB).to_bytes(4),
        "a member's metadata": header(ApiKey.JOIN_GROUP, 0) + b"\0\1g\0\0\x17\x70\0\0\0\1c\0\0\0\1\0\1r" + size,
        "an assignment": header(ApiKey.SYNC_GROUP, 0) + b"\0\1g\0\0\0\1\0\0\0\0\0\1\0\0" + size,
        "nothing else": header(ApiKey.API_VERSIONS, 0),
        "unknown tags": header(ApiKey.API_VERSIONS, 3, flexible=True) + b"\2a\2a\xff\xff\xff\x0f",
    }


def send_full_size(broker: BrokerProcess, body: bytes, zeros: memoryview) -> str:
    """Send a request of 100 MB. Return "answered", or "closed" if the broker closes the connection."""
    with broker.connect() as connection:
        try:
            connection.sendall(FULL_SIZE.to_bytes(4) + body)
            left = FULL_SIZE - len(body)
            while left > 0:
                left -= connection.send(zeros[: min(left, len(zeros))])
            return "answered" if connection.recv(4) else "closed"
        except OSError:
            return "closed"


def storm(broker: BrokerProcess, connections: int) -> Counter[str]:
    """Send requests of 100 MB on many connections at the same time. Return how often each outcome occurs."""
    bodies, zeros, outcomes = list(full_size_bodies().items()), memoryview(bytes(MIB)), Counter[str]()

    def attack(number: int) -> None:
        name, body = bodies[number % len(bodies)]
        outcomes[f"{name}: {send_full_size(broker, body, zeros)}"] += 1

    threads = [threading.Thread(target=attack, args=(number,)) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


# Connections that send nothing, a part of a request, or one small request


@contextlib.contextmanager
def half_open(broker: BrokerProcess, connections: int) -> Iterator[list[socket.socket]]:
    """Keep several connections open until the end of the `with` block.

    Some have sent nothing, some have sent a part of a request, and some are idle after a request.
    """
    beginnings: tuple[Callable[[socket.socket], object], ...] = (
        lambda connection: None,
        lambda connection: connection.sendall(b"\0\0"),
        lambda connection: connection.sendall(FULL_SIZE.to_bytes(4) + b"\0"),
        lambda connection: connection.sendall((100_000).to_bytes(4) + bytes(50_000)),
        lambda connection: ask(connection, ApiVersionsRequest(), 0),
    )
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(broker.connect()) for _ in range(connections)]
        for number, connection in enumerate(opened):
            beginnings[number % len(beginnings)](connection)
        yield opened


@dataclass
class Report:
    """The counts and times of one run, and a list of the failed checks."""

    lines: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        self.lines.append(line)
        print(line, flush=True)

    def fault_if(self, is_fault: bool, fault: str) -> None:
        if is_fault:
            self.faults.append(fault)
            self.add(f"FAULT: {fault}")


def run(directory: Path, *, requests: int, connections: int, silent: int, seed: int) -> Report:
    """Start a broker, and attack it with damaged requests, with huge requests, and with silent connections.

    Return the counts, the times and the failed checks.
    """
    report = Report()
    primitives.LONGEST_STRING = 1 << 30  # Allow this process to encode strings that a broker must refuse.
    with BrokerProcess(directory) as broker:
        _report_requests(report, broker, requests, seed)
        for name, attack in (
            (f"{connections} connections with requests of 100 MB", lambda: storm(broker, connections)),
            (f"{silent} half-open and idle connections", lambda: _hold(broker, silent)),
        ):
            with Probe(broker, MetadataRequest(topics=None), 1) as probe:
                begin = time.monotonic()
                found = attack()
            report.add(f"{name}, {time.monotonic() - begin:.1f} s: {dict(found)}")
            slowest = max(probe.own_times, default=LIMIT)
            wall = max(probe.times, default=LIMIT)
            report.add(f"  another client was served {len(probe.times)} times, at most in {slowest:.2f} s")
            report.add(f"  with waits for a processor, at most in {wall:.2f} s")
            report.fault_if(slowest > LIMIT, f"another client had to wait {slowest:.2f} s during {name}")
            _report_memory(report, broker)
        _report_end(report, broker)
    return report


def _hold(broker: BrokerProcess, connections: int) -> Counter[str]:
    with half_open(broker, connections):
        time.sleep(3)
        return Counter({"held": connections})


def _report_requests(report: Report, broker: BrokerProcess, requests: int, seed: int) -> None:
    begin, attacker = time.monotonic(), Attacker(broker, seed)
    attacker.attack(requests)
    figures, seconds = attacker.figures, time.monotonic() - begin
    report.add(f"{figures.sent} requests with seed {seed} in {seconds:.0f} s: {dict(figures.outcomes)}")
    slowest = sorted(figures.slowest.items(), key=lambda item: -item[1])[:5]
    report.add("  slowest: " + ", ".join(f"{api} {seconds:.3f} s" for api, seconds in slowest))
    for line in figures.too_slow[:20]:
        report.fault_if(True, line)
    _report_memory(report, broker)


def _report_memory(report: Report, broker: BrokerProcess) -> None:
    peak = broker.peak_memory
    report.add(f"  resident memory {broker.memory / MIB:.0f} MB, at most {peak / MIB:.0f} MB")
    report.fault_if(peak > MAX_MEMORY, f"the broker has used {peak / MIB:.0f} MB")


def _report_end(report: Report, broker: BrokerProcess) -> None:
    report.fault_if(not broker.is_alive, "the broker has ended")
    with broker.connect() as connection:
        answer: Response = ask(connection, MetadataRequest(topics=None), 1)
    report.fault_if(not isinstance(answer, response_class(ApiKey.METADATA)), "the broker does not serve any more")
    report.fault_if("Traceback" in broker.log, f"a traceback is in the log: {_first_traceback(broker.log)}")


def _first_traceback(log: str) -> str:
    start = log.find("Traceback")
    return log[max(0, start - 300) : start + 3000]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--connections", type=int, default=200, help="with requests of 100 MB")
    parser.add_argument("--silent", type=int, default=1_000, help="half-open and idle connections")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hmb-hostile-") as directory:
        report = run(Path(directory), **vars(arguments))
    sys.exit(1 if report.faults else 0)


if __name__ == "__main__":
    main()
