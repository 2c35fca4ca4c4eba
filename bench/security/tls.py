"""Sends and reads records over TLS, with Kafka's Java client and with librdkafka.

The benchmark measures clients with two implementations of TLS: Java's implementation, and OpenSSL, which
librdkafka uses. Clients for many languages are built on librdkafka, for example confluent-kafka for Python.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from .. import peers
from ..load.consumers import Kafka43Consumer
from ..load.producers import HmbProducer, Kafka43Producer
from ..load.workload import Workload
from ..peers import topics
from ..scenarios.clients import ClientSettings, LibraryClient, run_client
from .brokers import SecuredBroker

TOPIC, FILLED = "hmb-bench-tls", "hmb-bench-tls-filled"
RDKAFKA_SETTINGS = ClientSettings(acks=1, linger_ms=5, batch_size=262_144)


class TlsClient(ABC):
    """A client whose producer and consumer connect to a broker with TLS."""

    name: str
    extra_records = 0  # the number of records that a producer sends before its clock starts

    @abstractmethod
    def produce(self, broker: SecuredBroker, workload: Workload) -> dict[str, float]:
        """Send the records of a workload to the topic TOPIC, and return the measured values: name -> value."""

    @abstractmethod
    def consume(self, broker: SecuredBroker, records: int) -> dict[str, float]:
        """Read the records of the topic FILLED, and return the measured values: name -> value."""


class JavaClient(TlsClient):
    """Kafka's Java client, which the tools ProducerPerformance and ConsumerPerformance use."""

    name = Kafka43Producer.name

    def produce(self, broker: SecuredBroker, workload: Workload) -> dict[str, float]:
        return Kafka43Producer(self._settings(broker)).run(broker.tls, TOPIC, workload).figures

    def consume(self, broker: SecuredBroker, records: int) -> dict[str, float]:
        return Kafka43Consumer(self._settings(broker)).run(broker.tls, FILLED, records)

    def _settings(self, broker: SecuredBroker) -> dict[str, str]:
        store = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(broker.authority)}
        return {"security.protocol": "SSL", **store}


class RdkafkaClient(TlsClient):
    """The client library librdkafka, which the benchmark calls through the Python package `confluent-kafka`.

    By default, a consumer of librdkafka stops fetching for one second when 100,000 fetched records wait in its
    queue (fetch.queue.backoff.ms). The pauses limit the consumer to about 130,000 records/s, even if the broker is
    much faster. The benchmark therefore turns the pauses off.
    """

    name = "confluent-kafka"
    extra_records = 1

    def produce(self, broker: SecuredBroker, workload: Workload) -> dict[str, float]:
        return self._run(broker, LibraryClient(self.name, "produce", workload.records), TOPIC)

    def consume(self, broker: SecuredBroker, records: int) -> dict[str, float]:
        return self._run(broker, LibraryClient(f"{self.name} consume at once", "consume", records), FILLED)

    def _run(self, broker: SecuredBroker, client: LibraryClient, topic: str) -> dict[str, float]:
        security = {"security.protocol": "ssl", "ssl.ca.location": str(broker.authority)}
        return run_client(replace(broker.plain, bootstrap=broker.tls), client, topic, RDKAFKA_SETTINGS, security)


CLIENTS: tuple[TlsClient, ...] = (JavaClient(), RdkafkaClient())


def fill(broker: SecuredBroker, workload: Workload) -> None:
    """Write the records of a workload into the topic that the consumers read."""
    topics.create(broker.plain.bootstrap, FILLED)
    HmbProducer().run(broker.plain.bootstrap, FILLED, workload)


def produce(broker: SecuredBroker, client: TlsClient, workload: Workload) -> dict[str, float]:
    """Run a producer once on a new topic, delete the topic, and return the measured values.

    Raises PeerFailed if the log does not contain all records after the run.
    """
    bootstrap = broker.plain.bootstrap
    topics.create(bootstrap, TOPIC)
    before = broker.plain.cpu_seconds()
    figures = client.produce(broker, workload)
    costs = broker.plain.costs_since(before)
    end = topics.end_offset(bootstrap, TOPIC)
    if end != workload.records + client.extra_records:
        raise peers.PeerFailed(f"{client.name} to {broker.name} with TLS: the log ends at offset {end}")
    topics.delete(bootstrap, TOPIC)
    return {**figures, **costs}


def consume(broker: SecuredBroker, client: TlsClient, workload: Workload) -> dict[str, float]:
    """Run a consumer once, and return the measured values. Raises PeerFailed if the consumer misses records."""
    before = broker.plain.cpu_seconds()
    figures = client.consume(broker, workload.records)
    return {**figures, **broker.plain.costs_since(before)}


ACTIONS = {"produce": produce, "consume": consume}
