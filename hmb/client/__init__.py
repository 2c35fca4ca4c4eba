"""The client library: producer, consumer, group member and administration.

Every request of a client has to reach one particular broker: the leader of a partition, the coordinator of a group or
of a transaction, or the controller. Brokers change these roles, fail and restart. The client therefore has three
layers::

    Producer   Consumer   Admin             records, groups, topics
        |         |         |
    Cluster, CoordinatorConnection          which broker? (metadata, coordinators, retries)
        |
    Connection                              one socket: versions, requests, responses
        |
    hmb.protocol                            bytes and messages

A `Connection` finds out which versions its broker knows. A `Cluster` knows the leader of each partition. If a request
fails because a broker has changed its role, the layer above requests new metadata and sends the request again.

For example, `producer.send("weather", b"rain")` chooses the partition weather-1. The `Cluster` finds that broker 2
leads it. A sender thread adds the record to a batch and sends the batch in a Produce request on the connection to
broker 2.

Read in this order:

1. `connection`: one socket, with `socket_stream` and `reconnecting`.
2. `metadata`: leaders of partitions.
3. `producing`: from `send` to the result.
4. `consuming`: from the subscription to the records.
5. `group`: members of a group, and committed offsets.
6. `coordinator`: the coordinators of groups and transactions.
7. `admin`: topics, settings, groups and the cluster.

These modules can be skipped in a first reading: `settings` (the declaration of keyword arguments), `offsets` (the ways
to name an offset), `arguments` (checks), `retries` and `errors` (the tree of all exceptions).

Limits: TLS and SASL are missing.

Source: the behavior of org.apache.kafka.clients (Kafka 4.3).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hmb.client.admin import Admin, NewTopic
    from hmb.client.connection import ClosedByBroker, Connection, ConnectionFailed
    from hmb.client.consuming.consumer import Consumer, ConsumerRecord
    from hmb.client.consuming.reader import ConsumerMetrics
    from hmb.client.consuming.simple_consumer import SimpleConsumer
    from hmb.client.errors import DeserializationError
    from hmb.client.group.interface import GroupMetadata, OffsetAndMetadata
    from hmb.client.metadata import Cluster
    from hmb.client.offsets import AtTime, FromStart
    from hmb.client.producing.delivery import Deliveries, Delivery, RecordMetadata
    from hmb.client.producing.metrics import ProducerMetrics
    from hmb.client.producing.producer import Producer
    from hmb.client.settings import SettingError
    from hmb.protocol.errors import HmbError, KafkaError
    from hmb.protocol.topics import TopicPartition

__all__ = [
    "Admin",
    "AtTime",
    "ClosedByBroker",
    "Cluster",
    "Connection",
    "ConnectionFailed",
    "Consumer",
    "ConsumerMetrics",
    "ConsumerRecord",
    "Deliveries",
    "Delivery",
    "DeserializationError",
    "FromStart",
    "GroupMetadata",
    "HmbError",
    "KafkaError",
    "NewTopic",
    "OffsetAndMetadata",
    "Producer",
    "ProducerMetrics",
    "RecordMetadata",
    "SettingError",
    "SimpleConsumer",
    "TopicPartition",
]

_MODULES = {
    "Admin": "hmb.client.admin",
    "AtTime": "hmb.client.offsets",
    "ClosedByBroker": "hmb.client.connection",
    "Cluster": "hmb.client.metadata",
    "Connection": "hmb.client.connection",
    "ConnectionFailed": "hmb.client.connection",
    "Consumer": "hmb.client.consuming.consumer",
    "ConsumerMetrics": "hmb.client.consuming.reader",
    "ConsumerRecord": "hmb.client.consuming.consumer",
    "Deliveries": "hmb.client.producing.delivery",
    "Delivery": "hmb.client.producing.delivery",
    "DeserializationError": "hmb.client.errors",
    "FromStart": "hmb.client.offsets",
    "GroupMetadata": "hmb.client.group.interface",
    "HmbError": "hmb.protocol.errors",
    "KafkaError": "hmb.protocol.errors",
    "NewTopic": "hmb.client.admin",
    "OffsetAndMetadata": "hmb.client.group.interface",
    "Producer": "hmb.client.producing.producer",
    "ProducerMetrics": "hmb.client.producing.metrics",
    "RecordMetadata": "hmb.client.producing.delivery",
    "SettingError": "hmb.client.settings",
    "SimpleConsumer": "hmb.client.consuming.simple_consumer",
    "TopicPartition": "hmb.protocol.topics",
}


def __getattr__(name: str) -> object:
    """Import a name at its first use, so that a program that lists topics does not import the producer."""
    if name not in _MODULES:
        raise AttributeError(f"module 'hmb.client' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return the names that the package offers, also those that are not imported yet."""
    return list(__all__)
