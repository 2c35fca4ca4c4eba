"""The client: `Connection` sends any request, `Producer` and `Consumer` do what programs want.

    connection   one socket to one broker: agrees on versions, sends requests, reads answers
    metadata     which broker leads which partition
    partitioner  which partition a record goes to
    accumulator  records on their way, gathered into batches
    sender       the thread that sends batches, and sends them again
    producer     the producer, made of the four above
    consumer     the consumer

Source: the behaviour of org.apache.kafka.clients (Kafka 4.3). Left out so far: consumer groups, transactions, admin,
TLS and SASL, topic ids.
"""

from hmb.client.accumulator import RecordMetadata
from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.consumer import Consumer, ConsumerRecord
from hmb.client.metadata import Cluster, TopicPartition
from hmb.client.producer import Producer

__all__ = [
    "Cluster",
    "Connection",
    "ConnectionFailed",
    "Consumer",
    "ConsumerRecord",
    "Producer",
    "RecordMetadata",
    "TopicPartition",
]
