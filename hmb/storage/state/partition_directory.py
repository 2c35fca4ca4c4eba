"""The name of a log's directory, as in Kafka: `orders-0` contains the log of partition 0 of the topic `orders`."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from hmb.protocol.topics import TopicPartition

LOGGER = logging.getLogger(__name__)
PARTITION_NAME = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,8})")
KAFKA_METADATA_TOPIC = "__cluster_metadata"  # the log of a Kafka controller (KRaft); not a topic of this broker


def partition_of(path: Path) -> TopicPartition | None:
    """Return the partition whose log is in the directory `path`, or None if `path` is not a log's directory."""
    match = PARTITION_NAME.fullmatch(path.name)
    if match is None or match[1] == KAFKA_METADATA_TOPIC:
        return None
    if not path.is_dir():
        LOGGER.warning("%s is not a directory, but has the name of a partition: the broker ignores it", path)
        return None
    return TopicPartition(match[1], int(match[2]))
