"""Measures the time from a broker's start to its first acknowledged record, and the broker's memory at this time.

These commands are examples:
    hmb bench start
    hmb bench start --repeat 9 --json
    hmb bench start --versus ../before               # this HMB and the HMB of another checkout

The measurement begins with the start of the broker's process. A client tries to connect every 2 ms. When the client is
connected, it sends one record to a topic that does not exist. The measured time therefore includes the creation of this
topic.

Each run begins with an empty data directory. Before a Kafka broker can start, Kafka's tool
`kafka-storage format` prepares this directory in about 2 s. The measured time does not include this
preparation.
"""

from __future__ import annotations

import socket
import time

from hmb.client import Producer

from .. import peers
from ..measurement import Measurement, scenario, versus_option
from ..peers.chosen import broker_kinds
from ..report.view import Column, SampleView

TOPIC = "first"
VIEW = SampleView(
    columns=(
        Column("first_ack_seconds", "s to the first ack", compare=True),
        Column("broker_resident_bytes", "resident memory, MB", 1e-6, spread=False, compare=True, digits=0),
    ),
    title=lambda _: "From the start of the process to the first acknowledged record",
)


def start(broker: peers.Peer) -> dict[str, float]:
    """Start a broker, send one record and stop the broker. Return the measured time and memory. Raises PeerFailed."""
    broker.prepare()
    try:
        started = time.perf_counter()
        broker.spawn()
        await_port(broker)
        with Producer(broker.bootstrap, acks=1, linger_ms=0) as producer:
            producer.send(TOPIC, b"x").result(timeout=peers.START_SECONDS)
        seconds = time.perf_counter() - started
        return {"first_ack_seconds": seconds, "broker_resident_bytes": float(peers.resident_bytes(broker.pid))}
    finally:
        broker.stop()
        broker.remove()


def await_port(broker: peers.Peer) -> None:
    """Wait until the broker's port accepts connections. Raises PeerFailed after START_SECONDS."""
    deadline = time.monotonic() + peers.START_SECONDS
    while True:
        try:
            return socket.create_connection((peers.HOST, broker.port), timeout=1).close()
        except OSError as refused:
            if time.monotonic() > deadline:
                raise peers.PeerFailed(f"{broker.name} did not start; its log ends:\n{broker.log_tail()}") from refused
            time.sleep(0.002)


@scenario("start", VIEW)
@versus_option
def command(measurement: Measurement, versus: peers.Installation | None) -> None:
    """Measure the time from the start of a broker to its first acknowledged record, and the memory that it then uses.

    HMB and Kafka 4.3.0 start alternately.
    """
    kinds = broker_kinds(versus)
    progress = measurement.progress(len(kinds) * measurement.round_count)
    for number, kind in measurement.rounds(kinds):
        progress.step(f"round {number + 1}, {kind.name}")
        measurement.add(number, kind.name, "HMB", {}, start(kind.make()))
