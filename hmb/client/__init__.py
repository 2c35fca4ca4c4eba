"""The client library: programs use it to send and read records, to join groups and to administer a cluster.

A client must send most requests to one particular broker. For example, only the leader of a partition accepts records
for this partition. Leaders change, and brokers fail and restart. The client library finds the right broker for each
request. The library has three layers above the protocol. The right column shows the work of each layer:
    Producer   Consumer   Admin             records, groups, topics
        |         |         |
    Cluster, CoordinatorConnection          the right broker: metadata, coordinators, retries
        |
    Connection                              one socket: versions, requests, responses
        |
    hmb.protocol                            bytes and messages

A `Connection` asks its broker which versions of each request it supports. A `Cluster` knows the leader of each
partition. If a broker is no longer the leader of a partition, it refuses the request. The client then finds the new
leader and repeats the request.

For example, an application calls `producer.send("weather", b"rain")`. The application's thread chooses partition 1 of
the topic, and adds the record to a batch. A second thread, the router, finds the leader of this partition in the
`Cluster`: broker 2. The sender thread for broker 2 then sends the batch in a Produce request.

Read the modules in this order:
1. `connection`: the connection to one broker, with its helpers `socket_stream` and `reconnecting`.
2. `metadata`: the brokers and the leaders of partitions.
3. `producing`: the producer, from `send` to the result.
4. `consuming`: the consumer, from the subscription to the records.
5. `group`: the members of a consumer group, and committed offsets.
6. `coordinator`: the connection to the coordinator of a group or of a transaction.
7. `share`: the share consumer, which reads a topic as a queue.
8. `admin`: the administration of topics, settings, groups and the cluster.

You can skip these modules in a first reading:
- `settings` declares keyword arguments, and `arguments` checks arguments.
- `offsets`: the ways in which an application can name an offset.
- `delegation` makes methods that only call a function of another module.
- `retries` repeats requests, and `backoff` computes the pause before the next attempt.
- `security`: TLS, and the login with SASL.
- `errors` describes all exceptions.

Limits: to log in, the client library supports SASL's mechanisms PLAIN, SCRAM and OAUTHBEARER, but not GSSAPI
(Kerberos). An application needs another client for a cluster that accepts only GSSAPI.

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
    from hmb.client.share.acknowledgements import ShareRecord
    from hmb.client.share.consumer import ShareConsumer
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
    "ShareConsumer",
    "ShareRecord",
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
    "ShareConsumer": "hmb.client.share.consumer",
    "ShareRecord": "hmb.client.share.acknowledgements",
    "SimpleConsumer": "hmb.client.consuming.simple_consumer",
    "TopicPartition": "hmb.protocol.topics",
}


def __getattr__(name: str) -> object:
    """Import a public class of the package when a program uses the class for the first time.

    For example, a program that only lists topics never imports the producer's modules.
    """
    if name not in _MODULES:
        raise AttributeError(f"module 'hmb.client' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return all public names of the package, including the names that are not imported yet."""
    return list(__all__)
