"""A proxy for tests. It behaves like an unreliable network, and like clients that send a request twice.

    with Unreliable(broker.bootstrap, random_seed, Chances()) as network:
        hmb.Producer(network.address)

The proxy receives whole frames from the client and from the broker. For each frame, the proxy selects a failure, or
none, at random. Each connection has its own random numbers, which the seed determines. A test with the same seed
therefore repeats the kinds of failures, but not their exact moments, which depend on threads and processes.

The proxy can cause these failures:

    cut       the connection breaks in the middle of the frame, in either direction
    late      the connection breaks for the client, but the request arrives at the broker a while later
    copied    a Produce arrives twice in a row, and the proxy drops the second response
    lost      the broker's responses no longer arrive, although the connection stays open
    delayed   the frame waits for a moment
    throttled the frame arrives in small pieces

The proxy does not reorder or change requests, because TCP does not do that. The proxy replaces only the brokers'
addresses in responses, so that clients connect to the proxy and not to the brokers. The failures begin when a test sets
`calm` to False. Until then, a client can connect without failures.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self

from hmb.cli.wire.frames import WireFrame
from hmb.cli.wire.readdressing import Address, holds_addresses, readdressed
from hmb.client.metadata import parse_servers
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ProtocolError
from hmb.protocol.framing import read_frame
from hmb.protocol.messages import response_class

MAX_FRAME = 1 << 28
PIECES = 8  # the number of pieces of a throttled frame


class Fate(StrEnum):
    PASSED = "passed on"
    CUT = "cut"
    LATE = "late"
    COPIED = "copied"
    LOST = "lost"
    DELAYED = "delayed"
    THROTTLED = "throttled"


@dataclass(frozen=True)
class Chances:
    """The probability of each failure (0 to 1), and the longest times that frames wait, in seconds."""

    requests: dict[Fate, float] = field(
        default_factory=lambda: {Fate.CUT: 0.01, Fate.LATE: 0.01, Fate.COPIED: 0.05, Fate.DELAYED: 0.02}
    )
    answers: dict[Fate, float] = field(
        default_factory=lambda: {Fate.CUT: 0.02, Fate.LOST: 0.002, Fate.DELAYED: 0.02, Fate.THROTTLED: 0.01}
    )
    pause: float = 0.1  # the longest time that a delayed or throttled frame waits in the proxy
    lateness: float = 0.3  # the longest delay of a late request


class Asked(NamedTuple):
    """A request for which the proxy has not yet received the response."""

    api_key: int
    version: int
    is_copy: bool = False


class Link:
    """A client's connection to the broker through the proxy."""

    def __init__(self, client: socket.socket, broker: socket.socket, seed: str) -> None:
        self.client, self.broker = client, broker
        self.asked: deque[Asked] = deque()
        self.is_mute = False  # whether the proxy drops all further responses
        self.of_requests, self.of_answers = (random.Random(f"{seed} {name}") for name in ("requests", "answers"))

    def end(self) -> None:
        for each in (self.client, self.broker):
            shut(each)


class Unreliable:
    """A proxy between the clients and one broker. The proxy causes random failures."""

    def __init__(self, bootstrap: str, seed: int, chances: Chances | None = None) -> None:
        self.calm = True
        self.seen: Counter[tuple[str, Fate]] = Counter()
        self._broker, self._seed, self._chances = parse_servers(bootstrap)[0], seed, chances or Chances()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._here = Address(*self._listener.getsockname()[:2])
        self._links: list[Link] = []
        self._lock = threading.Lock()  # guards the counts and the list of links
        self._over = threading.Event()

    @property
    def address(self) -> str:
        return str(self._here)

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._over.set()
        shut(self._listener)
        self._listener.close()
        with self._lock:
            for link in self._links:
                link.end()

    def __str__(self) -> str:
        """Return the counts: "1234 requests: 1200 passed on, 12 cut ...; 1222 answers: ..."."""
        parts = []
        for direction in ("requests", "answers"):
            of_direction = {fate: self.seen[direction, fate] for fate in Fate if self.seen[direction, fate]}
            counts = ", ".join(f"{count} {fate}" for fate, count in of_direction.items())
            parts.append(f"{sum(of_direction.values())} {direction}: {counts}")
        return "; ".join(parts)

    def _accept(self) -> None:
        number = 0
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(self._broker, timeout=10)
            except OSError:
                client.close()  # The broker does not run. The client must see a closed connection.
                continue
            broker.settimeout(None)
            for each in (client, broker):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number += 1
            link = Link(client, broker, f"{self._seed} {number}")
            with self._lock:
                self._links.append(link)
            for pump in (self._requests, self._answers):
                threading.Thread(target=self._run, args=(pump, link), daemon=True).start()

    def _run(self, pump: Callable[[Link], None], link: Link) -> None:
        try:
            with suppress(OSError, ProtocolError):
                pump(link)
        finally:
            # Only the thread of the answers closes the connections. The other thread still sends late requests.
            if pump == self._answers:
                link.client.close()
                link.broker.close()

    def _fate(self, direction: str, chance: random.Random, chances: dict[Fate, float]) -> Fate:
        drawn = chance.random()
        fate = Fate.PASSED
        for each, share in chances.items():
            drawn -= share
            if drawn < 0 and not self.calm:
                fate = each
                break
        with self._lock:
            self.seen[direction, fate] += 1
        return fate

    # Frames from the client to the broker

    def _requests(self, link: Link) -> None:
        with link.client.makefile("rb") as stream:
            while (frame := read_frame(stream, MAX_FRAME)) is not None:
                wire = len(frame).to_bytes(4, "big") + frame
                if not self._request(link, wire):
                    return
        shut(link.broker, socket.SHUT_WR)

    def _request(self, link: Link, wire: bytes) -> bool:
        """Handle one request of the client. Return whether the connection stays open."""
        api_key, version = int.from_bytes(wire[4:6], "big"), int.from_bytes(wire[6:8], "big")
        chance = link.of_requests
        fate = self._fate("requests", chance, self._chances.requests)
        link.asked.append(Asked(api_key, version))
        if fate is Fate.CUT:
            link.broker.sendall(wire[: chance.randrange(len(wire))])
            link.end()
            return False
        if fate is Fate.LATE:
            link.is_mute = True
            shut(link.client)
            self._over.wait(chance.uniform(0, self._chances.lateness))
            link.broker.sendall(wire)
            shut(link.broker, socket.SHUT_WR)
            return False
        if fate is Fate.DELAYED:
            self._over.wait(chance.uniform(0, self._chances.pause))
        link.broker.sendall(wire)
        if fate is Fate.COPIED and api_key == ApiKey.PRODUCE:
            link.asked.append(Asked(api_key, version, is_copy=True))
            link.broker.sendall(wire)
        return True

    # Frames from the broker to the client

    def _answers(self, link: Link) -> None:
        with link.broker.makefile("rb") as stream:
            while (frame := read_frame(stream, MAX_FRAME)) is not None:
                asked = link.asked.popleft()
                if not asked.is_copy and not link.is_mute:
                    self._answer(link, self._readdressed(asked, len(frame).to_bytes(4, "big") + frame))
        link.end()

    def _answer(self, link: Link, wire: bytes) -> None:
        chance = link.of_answers
        fate = self._fate("answers", chance, self._chances.answers)
        if fate is Fate.LOST:
            link.is_mute = True
            return
        if fate is Fate.CUT:
            link.client.sendall(wire[: chance.randrange(len(wire))])
            link.is_mute = True
            shut(link.client)
            return
        if fate is Fate.DELAYED:
            self._over.wait(chance.uniform(0, self._chances.pause))
        size = len(wire) // PIECES + 1 if fate is Fate.THROTTLED else len(wire)
        for start in range(0, len(wire), size):
            link.client.sendall(wire[start : start + size])
            if fate is Fate.THROTTLED:
                time.sleep(self._chances.pause / PIECES)

    def _readdressed(self, asked: Asked, wire: bytes) -> bytes:
        message = response_class(asked.api_key)
        if not holds_addresses(message):
            return wire
        frame = WireFrame("response", memoryview(wire), message, asked.version)
        return bytes(readdressed(frame, lambda old, is_only: self._here)[0])


def shut(each: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    with suppress(OSError):
        each.shutdown(how)
