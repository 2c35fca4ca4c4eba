"""The client: `Connection` sends any request, `Producer` and `Consumer` do what programs want.

    connection   one socket to one broker: agrees on versions, sends requests, reads answers
    metadata     which broker leads which partition
    partitioner  which partition a record goes to
    delivery     what became of a record
    accumulator  records on their way, gathered into batches (`batch`)
    sender       the threads that send batches (`encoding` makes requests of them), and send them again
    idempotence  numbers, by which brokers know what was sent again
    transactions records of several partitions, all or none
    producer     the producer, made of these
    consumer     the consumer: a `reader` of partitions, with what says which (`subscription`, `group_reading`)
    offsets      where a partition begins and ends, or was at a time; how far each is read stands in positions
    fetcher      asks the leaders for batches; in_hand and arrow make records and columns of them
    membership   its place in a group, which group_membership keeps with the threads that drive one of the two
                 members (classic_member, consumer_member); commits save its offsets
    simple_consumer   the low-level consumer of Kafka 0.7: one broker, an offset in every request
    admin        topics, settings, groups, offsets and the cluster itself, to look at and to change

Source: the behaviour of org.apache.kafka.clients (Kafka 4.3). Left out so far: TLS and SASL.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hmb.client.admin import Admin, NewTopic
    from hmb.client.connection import Connection, ConnectionFailed
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
    from hmb.protocol.errors import KafkaError
    from hmb.protocol.topics import TopicPartition

__all__ = [
    "Admin",
    "AtTime",
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
    "KafkaError",
    "NewTopic",
    "OffsetAndMetadata",
    "Producer",
    "ProducerMetrics",
    "RecordMetadata",
    "SimpleConsumer",
    "TopicPartition",
]

_HOMES = {
    "Admin": "hmb.client.admin",
    "AtTime": "hmb.client.offsets",
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
    "KafkaError": "hmb.protocol.errors",
    "NewTopic": "hmb.client.admin",
    "OffsetAndMetadata": "hmb.client.group.interface",
    "Producer": "hmb.client.producing.producer",
    "ProducerMetrics": "hmb.client.producing.metrics",
    "RecordMetadata": "hmb.client.producing.delivery",
    "SimpleConsumer": "hmb.client.consuming.simple_consumer",
    "TopicPartition": "hmb.client.metadata",
}


def __getattr__(name: str) -> object:
    """Import a name when it is first used: who lists topics does not wait for the producer."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hmb.client' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
