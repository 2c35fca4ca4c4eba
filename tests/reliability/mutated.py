"""Mutated requests before and after the login, in one process and without a network.

    python -m tests.reliability.mutated                        # 10 million requests
    python -m tests.reliability.mutated --requests 100000 --seed 7
    python -m tests.reliability.mutated --seconds 600          # as many requests as fit into ten minutes

Unlike `hostile.py`, the program does not use sockets. It passes the bytes of each request directly to the dispatcher of
a broker, so it sends many more requests per second.

The program has three clients.

- The client *before the login* has not logged in. It tries to log in with all SASL mechanisms, but knows no password.
- The client *without rights* is authenticated, but no ACL permits it any operation.
- The *super user* sends requests that reach the handlers of all APIs.

The program reports a fault if the broker breaks one of the following rules:

- No request causes a traceback in the log, and no line of the log contains a control character.
- No request takes more than LIMIT seconds of processor time.
- No login attempt succeeds, and the client without rights changes neither topics nor records.

Each broker receives 60,000 requests (the constant ROUND). Then a new broker with an empty directory replaces it.
"""

from __future__ import annotations

import argparse
import logging
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from unittest import mock

from hmb.broker import BrokerServer, long_poll
from hmb.broker.context import ConnectedClient
from hmb.broker.deferred import final
from hmb.broker.dispatch import Dispatcher
from hmb.broker.errors import CloseConnection
from hmb.broker.network.request_memory import RequestMemory
from hmb.broker.security.login import Login
from hmb.broker.security.mechanisms import mechanisms_of
from hmb.coordinator import group_runner
from hmb.protocol import primitives
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ClientConnection
from hmb.protocol.errors import KafkaError, ProtocolError
from hmb.protocol.messages import API_KEYS, api_name, request_class
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from hmb.protocol.messages.sasl_handshake import SaslHandshakeRequest
from hmb.protocol.schema import Request
from tests.broker.security.provider import Provider
from tests.reliability.mutations import mutate
from tests.reliability.requests import COMPACTED, TOPIC, Generator, Known

LIMIT = 1.0  # seconds
ROUND = 60_000  # the number of requests to one broker
POOL = 600  # the number of valid requests that a round creates first, and later sends with random changes
LARGE_EVERY = 4_000  # one of 4,000 requests has an array with thousands of items
BUDGET = 64 << 20  # bytes; `queued.max.request.bytes` of the broker
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
BEFORE, WITHOUT_RIGHTS, SUPER_USER = CLIENTS = ("before the login", "without rights", "a super user")
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    "sasl.plain.users": "admin:a-long-secret,alice:another-secret",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "delegation.token.secret.key": "key-of-the-tokens",
    "client.telemetry.enable": "true",
    "log.flush.acks.all": "false",
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass
class MutationFigures:
    """The counts, the longest times and the faults of a run."""

    sent: Counter[str] = field(default_factory=Counter)  # the number of sent requests, by client
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)  # API -> seconds of its slowest request
    faults: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.sent.total()

    def lines(self) -> Iterator[str]:
        yield f"{self.total:,} mutated requests: {dict(self.sent)}; {dict(self.outcomes)}"
        slowest = sorted(self.slowest.items(), key=lambda item: -item[1])[:5]
        yield "  slowest: " + ", ".join(f"{api} {seconds:.3f} s" for api, seconds in slowest)
        yield f"  peak of the resident memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"


class LogWatch(logging.Handler):
    """A logging handler that checks the broker's log. A traceback or a line with a control character is a fault."""

    def __init__(self, figures: MutationFigures) -> None:
        super().__init__(logging.INFO)
        self._figures = figures

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info:
            traceback = logging.Formatter().formatException(record.exc_info)
            self._figures.faults.append(f"a traceback: {text[:300]!r}\n{traceback}")
        elif not text.isprintable():
            self._figures.faults.append(f"a line of {record.name} contains a control character: {text[:300]!r}")


class Round:
    """One broker and three clients: one has not logged in, one has no rights, and one is a super user."""

    def __init__(self, broker: BrokerServer, provider: Provider, seed: int, figures: MutationFigures) -> None:
        self._context = broker.context
        self._broker, self._figures = broker, figures
        self._token = provider.token()
        self._random = Random(seed)
        self._memory = RequestMemory(BUDGET)
        (security,) = broker.security.values()
        self._mechanisms = mechanisms_of(security, broker.context.security, broker.context.tokens)
        topics = [broker.context.topics.create(name, 2) for name in (TOPIC, COMPACTED)]
        self._known = Known(topic_ids=[topic.id for topic in topics])
        self._pool = [self._valid(large_arrays=0) for _ in range(POOL)]
        self._clients = {name: self._connect(name) for name in CLIENTS}

    def run(self, requests: int, deadline: float) -> None:
        """Send `requests` mutated requests, but stop at the deadline (monotonic clock)."""
        before = self._content()
        for client in CLIENTS:
            for number in range(requests // len(CLIENTS)):
                self._send(client, self._next(client, is_large=number % LARGE_EVERY == LARGE_EVERY // 2))
                if self._figures.total % 1000 == 0 and time.monotonic() > deadline:
                    return
            if client == WITHOUT_RIGHTS and self._content() != before:
                self._figures.faults.append("a client without rights has changed topics or records")

    def _content(self) -> list[tuple[str, int]]:
        return [(f"{topic}", log.log_end_offset) for topic, log in self._context.topics.logs()]

    def _connect(self, name: str) -> tuple[ConnectedClient, Dispatcher]:
        # The client counts as gone, so no request waits for long.
        client = ConnectedClient("127.0.0.1", is_gone=lambda: True)
        if name == BEFORE:
            client.login = Login(self._mechanisms, time.monotonic, {}, self._authenticated, lambda line: None)
        else:
            client.principal = "User:admin" if name == SUPER_USER else "User:alice"
        (listener,) = self._broker.listeners
        return client, Dispatcher(self._context, listener, self._broker._handlers, client)

    def _authenticated(self, principal: str) -> None:
        self._figures.faults.append(f"a client without a password was authenticated as {principal}")

    def _next(self, client: str, *, is_large: bool) -> bytes:
        random = self._random
        if client == BEFORE and random.random() < 0.9:
            login = self._clients[client][0].login
            assert login is not None
            if login.expects_raw_token:
                return mutate(random, self._message())
            # Continue the login, to reach the states after the handshake.
            if login.state.name == "NEW" and random.random() < 0.6:
                mechanism = random.choice(MECHANISMS)
                return self._encoded(SaslHandshakeRequest(mechanism=mechanism), random.choice((0, 1, 1)))
            return mutate(random, self._of_login())
        body = self._valid(large_arrays=0.3) if is_large else random.choice(self._pool)
        return mutate(random, body)

    def _of_login(self) -> bytes:
        random = self._random
        kind = random.random()
        if kind < 0.1:
            request: Request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
            return self._encoded(request, random.choice((0, 3, 4)))
        if kind < 0.2:
            return self._encoded(SaslHandshakeRequest(mechanism=random.choice(MECHANISMS)), 1)
        return self._encoded(SaslAuthenticateRequest(auth_bytes=self._message()), random.choice((0, 1, 2)))

    def _message(self) -> bytes:
        """Return a random message of a SASL login. It contains no correct password and no correct signature."""
        messages = (
            b"\0alice\0guess",
            b"admin\0admin\0guess",
            b"n,,n=alice,r=abcdef",
            b"n,,n=admin,r=abcdef,tokenauth=true",
            b"n,a=admin,n=alice,r=abcdef",
            b"c=biws,r=abcdef,p=" + b"A" * 43 + b"=",
            f"n,,\x01auth=Bearer {self._token}\x01\x01".encode(),
            b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.\x01\x01",
            b"\x01",
        )
        return self._random.choice(messages)

    def _valid(self, large_arrays: float) -> bytes:
        """Return a valid request of any API and version, with its header and without its length."""
        random = self._random
        while True:
            cls = request_class(random.choice(API_KEYS))
            version = random.choice(cls.versions)
            generator = Generator(random, self._known, 2, 300, large_arrays=large_arrays)
            try:
                return self._encoded(generator.message(cls, version), version)
            except (KafkaError, ProtocolError, ValueError):
                continue  # This version cannot encode one of the values.

    def _encoded(self, request: Request, version: int) -> bytes:
        client = ClientConnection(self._random.choice(("client", "", "a\nb", "\x1b[31m")))
        parts = client.request(request, version)
        return b"".join(bytes(part) for part in parts if isinstance(part, bytes | bytearray | memoryview))[4:]

    def _send(self, name: str, body: bytes) -> None:
        figures, (_, dispatcher) = self._figures, self._clients[name]
        figures.sent[name] += 1
        account = self._memory.open(len(body))
        outcome, begin = "answered", time.thread_time()
        try:
            final(dispatcher.begin(memoryview(body), account))
        except CloseConnection:
            outcome = "closed"
        finally:
            account.close()
        seconds = time.thread_time() - begin
        figures.outcomes[outcome] += 1
        api = _name_of(body)
        figures.slowest[api] = max(figures.slowest.get(api, 0.0), seconds)
        if seconds > LIMIT:
            figures.faults.append(f"{api} of {len(body)} bytes took {seconds:.2f} s ({name}, {outcome})")
        if outcome == "closed":
            for action in self._clients[name][0].at_end.values():
                action()
            self._clients[name] = self._connect(name)


def _name_of(body: bytes) -> str:
    try:
        return api_name(ApiKey(int.from_bytes(body[:2], signed=True)))
    except ValueError:
        return "an unknown API"


def run(directory: Path, *, requests: int, seconds: float, seed: int, round_size: int = ROUND) -> MutationFigures:
    """Send mutated requests to one broker after another. Return the figures.

    End after `requests` requests, after `seconds` seconds, or after the first round with faults.
    """
    figures, deadline = MutationFigures(), time.monotonic() + seconds
    directory.joinpath("strange").mkdir()
    # The provider signs the tokens. The broker knows the key of another provider, so no token is valid.
    provider, trusted = Provider(directory / "strange"), Provider(directory)
    settings = SETTINGS | {"sasl.oauthbearer.jwks.endpoint.url": trusted.file.as_uri()}
    logger, watch = logging.getLogger("hmb"), LogWatch(figures)
    level = logger.level
    logger.addHandler(watch)
    logger.setLevel(logging.INFO)
    try:
        with (
            mock.patch.object(group_runner, "CLIENT_CHECK_INTERVAL", 0.001),
            mock.patch.object(long_poll, "LOG_CHECK_INTERVAL", 0.001),
            mock.patch.object(primitives, "LONGEST_STRING", 1 << 30),
        ):
            number = 0
            while figures.total < requests and time.monotonic() < deadline and not figures.faults:
                with BrokerServer(config=settings, syncs=False) as broker:
                    size = min(round_size, requests - figures.total)
                    Round(broker, provider, seed + number, figures).run(max(size, len(CLIENTS)), deadline)
                number += 1
                print(*figures.lines(), sep="\n", flush=True)
    finally:
        logger.removeHandler(watch)
        logger.setLevel(level)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the longest time of the run")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hmb-mutated-") as directory:
        figures = run(Path(directory), **vars(arguments))
    for fault in figures.faults[:10]:
        print(f"FAULT: {fault}")
    sys.exit(1 if figures.faults else 0)


if __name__ == "__main__":
    main()
