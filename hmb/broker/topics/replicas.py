"""Replicas that a client assigns: for each partition a list of brokers, the preferred leader first.

HMB is one broker, so the only valid list contains this broker. Clients send lists of replicas in three requests: to
create topics, to add partitions, and to move partitions.
"""

from __future__ import annotations

from collections.abc import Sequence

from hmb.protocol.errors import ErrorCode, KafkaError


def check_replicas(replicas: Sequence[int], broker_id: int) -> None:
    """Raise INVALID_REPLICA_ASSIGNMENT unless the list contains exactly this broker."""
    if list(replicas) != [broker_id]:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"replicas {list(replicas)}: the only broker is {broker_id}, and it can hold a partition once",
        )
