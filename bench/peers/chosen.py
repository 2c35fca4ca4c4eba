"""Reads the options of a benchmark's command, and chooses the brokers that the benchmark measures.

These options choose the brokers:
    (no option)         HMB and Kafka 4.3.0; only HMB if Java or Kafka's jars are missing
    -b HOST:PORT        only the broker at this address
    --versus HOST:PORT  HMB, and the broker at this address
    -b A --versus B     the two brokers at the addresses A and B
    --versus CHECKOUT   this HMB, and the HMB that is installed in another checkout or virtual environment

Some benchmarks start a new broker for each run, for example to measure the broker's start. They call
`broker_kinds`, which returns objects that create brokers. Other benchmarks call `running_brokers` before the
first run, and use the returned brokers in all runs.
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
    """A running broker. `pid` is its process id, or None if the benchmark has not started the broker itself."""

    name: str
    bootstrap: str
    pid: int | None = None

    @classmethod
    def of(cls, peer: Peer) -> Self:
        return cls(peer.name, peer.bootstrap, peer.pid)

    def cpu_seconds(self) -> float:
        """Return the CPU time (s) of the broker's process, or 0 if the benchmark has not started this broker."""
        return 0.0 if self.pid is None else cpu_seconds(self.pid)

    def costs_since(self, cpu_before: float) -> dict[str, float]:
        """Return the CPU time (s) that the broker has used since an earlier moment, and its present memory (bytes).

        `cpu_before` is the result of `cpu_seconds` at the earlier moment. Return an empty dict if the benchmark has not
        started the broker.
        """
        if self.pid is None:
            return {}
        memory = float(resident_bytes(self.pid))
        return {"broker_cpu_seconds": self.cpu_seconds() - cpu_before, "broker_resident_bytes": memory}


class MakePeer(Protocol):
    def __call__(self, *, port: int | None = ..., config: Mapping[str, str] = ...) -> Peer: ...


@dataclass(frozen=True)
class BrokerKind:
    """A kind of broker, for example HMB or Kafka 4.3.0. `make` creates a new broker of this kind for one run."""

    name: str
    make: MakePeer


def running_brokers(
    stack: ExitStack, bootstrap: str | None, versus: str | Installation | None
) -> list[MeasuredBroker]:
    """Return the brokers to measure, and start those not running.

    Raises PeerFailed if a start fails. Closing the ExitStack `stack` stops the started brokers.
    """

    def start(make: MakePeer) -> MeasuredBroker:
        return MeasuredBroker.of(stack.enter_context(make()))

    first = MeasuredBroker(bootstrap, bootstrap) if bootstrap else start(Hmb)
    if isinstance(versus, str):
        return [first, MeasuredBroker(versus, versus)]
    if bootstrap and versus is None:
        return [first]
    return [first, *(start(kind.make) for kind in broker_kinds(versus)[1:])]


def broker_kinds(versus: Installation | None = None) -> list[BrokerKind]:
    """Return the kinds of brokers to compare: one or two kinds.

    The first kind is HMB from the installation that runs this benchmark. If `versus` is another installation, the
    second kind is HMB from `versus`. If `versus` is None, the second kind is Kafka 4.3.0, unless Kafka's jars are
    missing.
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
