"""Replicas as clients assign them by hand: a list of brokers for each partition, the preferred leader first.

There is one broker, so there is one such list.  It is asked for in three places: when a topic is made, when it gets
more partitions, and when partitions are moved.
"""

from __future__ import annotations

from collections.abc import Sequence

from hmb.protocol.errors import ErrorCode, KafkaError


def check_replicas(replicas: Sequence[int], broker_id: int) -> None:
    """Raises INVALID_REPLICA_ASSIGNMENT."""
    if list(replicas) != [broker_id]:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"replicas {list(replicas)}: the only broker is {broker_id}, and it can hold a partition once",
        )
