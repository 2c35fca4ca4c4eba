"""Topics and partitions: the rule for legal topic names, and the names of the broker's internal topics.

A topic name has 1 to 249 characters: letters, digits, '.', '_' or '-'. The names '.' and '..' are not allowed. Clients
and brokers both check topic names, with the function `check_topic_name`.

The name of a partition's directory consists of the topic's name, '-' and the partition's number, for example
`orders-12`. File systems allow 255 bytes for this name. A topic name is therefore limited to 249 characters: 6 bytes
remain for '-' and the number.

Each topic has an id in addition to its name (KIP-516). Some requests contain only the id. The topic's name in such a
request is empty.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from uuid import UUID

from hmb.protocol.errors import ErrorCode, KafkaError

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC)
"""The topics that only the broker writes. Clients may read them."""

NO_TOPIC_ID = UUID(int=0)
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
MAX_SHOWN = 300  # characters; an error message shows the first 300 of an illegal name


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class PartitionId(NamedTuple):
    """A partition, identified by its topic's id and its own number."""

    topic_id: UUID
    partition: int

    def __str__(self) -> str:
        return f"partition {self.partition} of the topic with the id {self.topic_id}"


def java_hash(text: str) -> int:
    """Return the same hash as Java's `String.hashCode()`, a signed number of 32 bits.

    A broker stores the state of a consumer group in one partition of an internal topic. It selects the partition
    with the hash of the group's id. HMB uses Java's hash to select the same partition as Kafka.

    The hash begins with 0. For each UTF-16 code unit, it becomes the lowest 32 bits of `31 * hash + unit`. For
    "ab", it is 31 * 97 + 98 = 3105.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value if value < 2**31 else value - 2**32


def check_topic_name(name: str) -> None:
    """Check that a topic name is legal.

    Raises KafkaError with INVALID_TOPIC_EXCEPTION if the name is illegal, and TypeError if it is not a str.
    """
    if not isinstance(name, str):
        raise TypeError(f"a topic's name must be a str, not {name!r}")
    if name in (".", "..") or not LEGAL_NAME.fullmatch(name):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{name[:MAX_SHOWN]!r} is not a topic name; a topic name consists of 1 to 249 letters, digits, '.', '_' or "
            "'-', and must not be '.' or '..'",
        )
