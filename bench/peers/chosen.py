"""The choice of the brokers that a benchmark measures, by its options.

    (no option)                 HMB and Kafka 4.3.0, started for the benchmark; HMB alone without Kafka's jars or Java
    -b HOST:PORT                the broker at this address
    --versus HOST:PORT          HMB, or the broker of -b, and the broker at this address
    --versus CHECKOUT           HMB and the HMB of another checkout or of another Python

A benchmark of a broker's start needs a new process for each run. Such a benchmark gets factories of peers
(`broker_kinds`). All other benchmarks get brokers that run from the first run to the last (`running_brokers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Protocol, Self

import click

from ..errors import PeerUnavailable
from .broker_process import Peer
from .hmb_broker import Hmb, Installation
from .jars import kafka_43_jars
from .kafka_43 import Kafka43
from .resources import cpu_seconds, resident_bytes


@dataclass(frozen=True)
class MeasuredBroker:
    """A running broker. `pid` is its process id if the benchmark started it, and None for a broker of `-b`."""

    name: str
    bootstrap: str
    pid: int | None = None

    @classmethod
    def of(cls, peer: Peer) -> Self:
        return cls(peer.name, peer.bootstrap, peer.pid)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the broker's process so far, in seconds; 0 if the benchmark did not start it."""
        return 0.0 if self.pid is None else cpu_seconds(self.pid)

    def costs_since(self, cpu_before: float) -> dict[str, float]:
        """Return two figures: the CPU time (seconds) since the value `cpu_before`, and the present resident memory.

        The figures are missing if the benchmark did not start the broker.
        """
        if self.pid is None:
            return {}
        memory = float(resident_bytes(self.pid))
        return {"broker_cpu_seconds": self.cpu_seconds() - cpu_before, "broker_resident_bytes": memory}


class MakePeer(Protocol):
    def __call__(self, *, config: Mapping[str, str] = ...) -> Peer: ...


@dataclass(frozen=True)
class BrokerKind:
    """A kind of broker, for example HMB.

    `make` returns a new peer of this kind, because each run needs a broker of its own.
    """

    name: str
    make: MakePeer


def running_brokers(
    stack: ExitStack, bootstrap: str | None, versus: str | Installation | None
) -> list[MeasuredBroker]:
    """Return the brokers to measure. Started brokers run until the stack closes. Raises PeerFailed."""

    def start(make: MakePeer) -> MeasuredBroker:
        return MeasuredBroker.of(stack.enter_context(make()))

    first = MeasuredBroker(bootstrap, bootstrap) if bootstrap else start(Hmb)
    if isinstance(versus, str):
        return [first, MeasuredBroker(versus, versus)]
    if bootstrap and versus is None:
        return [first]
    return [first, *(start(kind.make) for kind in broker_kinds(versus)[1:])]


def broker_kinds(versus: Installation | None = None) -> list[BrokerKind]:
    """Return HMB and its opponent: the HMB of `versus`, or without it Kafka 4.3.0.

    Without Kafka's jars the list contains HMB alone.
    """
    own = BrokerKind(Hmb.name, Hmb)
    if versus is not None:
        return [own, BrokerKind(versus.name, partial(Hmb, installation=versus))]
    try:
        kafka_43_jars()
    except PeerUnavailable as missing:
        click.echo(f"hmb: without {Kafka43.name}: {missing}", err=True)
        return [own]
    return [own, BrokerKind(Kafka43.name, Kafka43)]
