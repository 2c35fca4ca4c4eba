"""Checks replica assignments in requests. An assignment is a list of broker ids that starts with the preferred leader.

HMB is a cluster of one broker, so the only valid assignment is a list with this broker's id. Clients can send
assignments when they create topics, add partitions, or move partitions.
"""

from __future__ import annotations

from collections.abc import Sequence

from hmb.protocol.errors import ErrorCode, KafkaError


def check_replicas(replicas: Sequence[int], broker_id: int) -> None:
    """Raise INVALID_REPLICA_ASSIGNMENT if `replicas` is not a list with exactly one id, the id of this broker."""
    if list(replicas) != [broker_id]:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"replicas {list(replicas)}: the list must be [{broker_id}], because this broker is the only one",
        )
