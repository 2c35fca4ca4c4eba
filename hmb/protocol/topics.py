"""Topic names: the rules for legal names, the names of partitions, and the internal topics of the broker.

A topic name has 1 to 249 letters, digits, '.', '_' or '-', and is not '.' or '..'. The limit comes from file systems,
which allow 255 bytes for a name. A partition's directory has the topic's name, '-' and the partition's number, for
example `orders-12`. Clients and brokers check names by the same rule.

Since KIP-516 a topic also has an id. A request with an empty topic name refers to the topic by the id that it contains.
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
MAX_SHOWN = 300  # characters of an illegal name that an error message repeats


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def check_topic_name(name: str) -> None:
    """Raise KafkaError with INVALID_TOPIC_EXCEPTION for an illegal topic name, and TypeError if it is not a str."""
    if not isinstance(name, str):
        raise TypeError(f"a topic's name is a str, not {name!r}")
    if name in (".", "..") or not LEGAL_NAME.fullmatch(name):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{name[:MAX_SHOWN]!r} is not a topic name: 1 to 249 letters, digits, '.', '_' or '-', and not '.' or '..'",
        )
