"""Handles the requests for KIP-848 groups: heartbeats of members, and descriptions.

All groups are in one table, so a KIP-848 heartbeat can name a classic group. `GroupConverter` can convert this
classic group to a KIP-848 group (migration/converter.py).

Source: KIP-848; Kafka's `GroupCoordinatorService`.
"""

from __future__ import annotations

from hmb.coordinator.cluster_topics import MayDescribe, everything
from hmb.coordinator.consumer.description import DescribedConsumerGroup, describe_consumer_group
from hmb.coordinator.consumer.group import ConsumerGroup
from hmb.coordinator.consumer.heartbeat import check_heartbeat
from hmb.coordinator.group_runner import GroupRunner
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.member_memory import check_memory, subscription_size
from hmb.protocol.enums import JOIN_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


class ConsumerGroupRequests:
    """Handles the requests for KIP-848 groups. Thread-safe."""

    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        client_id: str,
        client_host: str,
        version: int,
        may_describe: MayDescribe = everything,
    ) -> ConsumerGroupHeartbeatResponse:
        """Handle ConsumerGroupHeartbeat: return the response after all changes are on disk. Raises KafkaError.

        `may_describe(topic)` returns whether ACLs let the client see a topic. Regular expressions in subscriptions
        match only topics for which this function returns True.
        """
        check_heartbeat(request, version)
        size = subscription_size(request.subscribed_topic_names or (), request.subscribed_topic_regex)
        check_memory(size, self._groups.all)
        runner, converter = self._find(request), self._groups.converter
        return runner.step(
            lambda now: converter.consumer_heartbeat(runner, request, client_id, client_host, now, may_describe),
            durable=True,
        )

    def _find(self, request: ConsumerGroupHeartbeatRequest) -> GroupRunner:
        if request.member_epoch == JOIN_EPOCH:
            return self._groups.find_or_make(request.group_id)
        try:
            return self._groups.find(request.group_id)
        except KafkaError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                raise KafkaError(error.code, f"Consumer group {request.group_id} not found.") from error
            raise

    def describe(self, group_id: str) -> DescribedConsumerGroup:
        """Return the state and the members of a KIP-848 group. Raises KafkaError."""
        runner = self._groups.find(group_id)
        with runner.lock:
            return describe_consumer_group(runner.as_kind(ConsumerGroup), self._groups.topics)
