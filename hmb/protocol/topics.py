"""Topics on the wire: what a topic may be called, how a partition is named, and which topics belong to the broker.

A topic name has 1 to 249 letters, digits, '.', '_' or '-', and is not '.' or '..'.  A partition's directory is the
topic's name, '-' and the partition's number.  File systems allow 255 bytes for a name, hence 249.  Clients check by the
same rule as brokers.

Since KIP-516 a topic also has an id.  An empty name therefore means more than an illegal one: a request with an empty
name asks for the topic whose id it gives.

Source: org.apache.kafka.common.internals.Topic (Kafka 4.3).
"""

import re
from typing import NamedTuple
from uuid import UUID

from hmb.protocol.errors import ErrorCode, KafkaError

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC)
"""The topics that the broker writes for itself.  Clients only read them."""

NO_TOPIC_ID = UUID(int=0)
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
MAX_SHOWN = 300  # characters of an illegal name that an error message repeats


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def check_topic_name(name: str) -> None:
    """Raise KafkaError with INVALID_TOPIC_EXCEPTION for an illegal topic name, and TypeError for anything but a str."""
    if not isinstance(name, str):
        raise TypeError(f"a topic's name is a str, not {name!r}")
    if name in (".", "..") or not LEGAL_NAME.fullmatch(name):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{name[:MAX_SHOWN]!r} is no topic name: 1 to 249 letters, digits, '.', '_' or '-', and not '.' or '..'",
        )
