"""Creates topics on any broker, fills them with records, changes their settings, and deletes them.

Kafka 0.8.2 has no API that creates or deletes a topic. If a Metadata request names an unknown topic, Kafka 0.8.2
creates this topic with `num.partitions` partitions. A client cannot delete a topic.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType

from hmb.client import Admin, Connection, NewTopic, Producer, TopicPartition
from hmb.client.admin import ConfigResource, ResourceType, raised
from hmb.client.metadata import parse_servers
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.metadata import MetadataRequest

TIMEOUT = 120.0  # the timeout of a request (seconds); a topic with 2,000 partitions needs a long time
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


def create(bootstrap: str, topic: str, settings: Mapping[str, str] = NO_SETTINGS, *, partitions: int = 1) -> None:
    """Create a topic whose partitions have one replica. Raises KafkaError, ConnectionFailed."""
    with Connection(*parse_servers(bootstrap)[0]) as connection:
        if not connection.supports(CreateTopicsRequest):
            _await_leader(connection, topic)
            return
    with Admin(bootstrap, request_timeout=TIMEOUT) as admin:
        raised(admin.create_topics([NewTopic(topic, partitions, 1, settings)])[topic])


def create_filled(bootstrap: str, topic: str, *, partitions: int, records: int, record_size: int) -> None:
    """Create a topic, and write `records` records of `record_size` bytes, evenly divided between its partitions."""
    create(bootstrap, topic, partitions=partitions)
    value = b"x" * record_size
    with Producer(bootstrap) as producer:
        for number in range(records):
            producer.send(topic, value, partition=number % partitions)


def _await_leader(connection: Connection, topic: str) -> None:
    """Send Metadata requests for a topic until its first partition has a leader. Raises KafkaError after TIMEOUT."""
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
    deadline = time.monotonic() + TIMEOUT
    while True:
        found = connection.send(request).topics[0]
        code = found.error_code or found.partitions[0].error_code
        if not code:
            return
        if time.monotonic() > deadline:
            raise KafkaError(ErrorCode(code))
        time.sleep(0.05)


def alter(bootstrap: str, topic: str, name: str, value: str) -> None:
    """Change one setting of a topic. Raises KafkaError."""
    with Admin(bootstrap) as admin:
        admin.alter_configs(ConfigResource(ResourceType.TOPIC, topic), set={name: value})


def delete(bootstrap: str, topic: str) -> None:
    """Delete a topic with its records. Do nothing with Kafka 0.8.2, which cannot delete topics. Raises KafkaError."""
    with Connection(*parse_servers(bootstrap)[0]) as connection:
        if not connection.supports(CreateTopicsRequest):
            return
    with Admin(bootstrap, request_timeout=TIMEOUT) as admin:
        raised(admin.delete_topics([topic])[topic])


def end_offset(bootstrap: str, topic: str) -> int:
    """Return the offset after the last record of partition 0. Raises KafkaError."""
    partition = TopicPartition(topic, 0)
    with Admin(bootstrap) as admin:
        return raised(admin.list_offsets({partition: "latest"})[partition]).offset
