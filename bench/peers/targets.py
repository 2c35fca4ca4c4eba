"""Which brokers a benchmark measures: two of its own in turns, or those that it is given.

(nothing)               HMB and Kafka 4.3.0, started for it; HMB alone where Kafka's jars or Java are missing
-b HOST:PORT            that broker, of whatever kind
-b HOST:PORT --vs ...   that one and another, in turns
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

from hmb.client.metadata import parse_servers

from .. import peers


@dataclass(frozen=True)
class Target:
    """A broker to measure; `pid` of one that was started here, whose CPU time and memory can be told."""

    name: str
    bootstrap: str
    pid: int | None = None

    @classmethod
    def of(cls, broker: peers.Peer) -> Self:
        return cls(broker.name, broker.bootstrap, broker.pid)

    def cpu_seconds(self) -> float:
        return 0.0 if self.pid is None else peers.cpu_seconds(self.pid)

    def costs(self, cpu_before: float) -> dict[str, float]:
        """Of a run that began at that CPU time; nothing is known of a broker elsewhere."""
        if self.pid is None:
            return {}
        resident = float(peers.resident_bytes(self.pid))
        return {"broker_cpu_seconds": self.cpu_seconds() - cpu_before, "broker_resident_bytes": resident}


def add_target_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-b", "--bootstrap-server", type=_servers, metavar="HOST:PORT", help="measure this broker; else HMB is started"
    )
    parser.add_argument(
        "--vs",
        type=_servers,
        metavar="HOST:PORT",
        help="and this, in turns; else Kafka 4.3.0 is started beside HMB",
    )


def targets(options: argparse.Namespace, stack: ExitStack) -> list[Target]:
    """The brokers to measure, running until the stack is closed.  Raises PeerFailed."""
    given = [each for each in (options.bootstrap_server, options.vs) if each]
    if given:
        if options.bootstrap_server is None:
            return [Target.of(stack.enter_context(peers.Hmb())), Target(options.vs, options.vs)]
        return [Target(each, each) for each in given]
    found = []
    for kind in (peers.Hmb, peers.Kafka43):
        try:
            found.append(Target.of(stack.enter_context(kind())))
        except peers.PeerUnavailable as missing:
            print(f"hmb: without {kind.name}: {missing}", file=sys.stderr)
    return found


def kinds_here() -> list[type[peers.Peer]]:
    """HMB, and Kafka 4.3.0 where it is installed, for benchmarks that start their brokers anew in each turn."""
    try:
        peers.kafka_43_jars()
    except peers.PeerUnavailable as missing:
        print(f"hmb: without {peers.Kafka43.name}: {missing}", file=sys.stderr)
        return [peers.Hmb]
    return [peers.Hmb, peers.Kafka43]


def _servers(text: str) -> str:
    try:
        parse_servers(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text
