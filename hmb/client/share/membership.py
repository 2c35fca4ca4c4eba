"""Keeps a share consumer in its group: a thread sends heartbeats (ShareGroupHeartbeat) to the broker.

The broker assigns partitions to the members of a share group, and sends each member its assignment in the response to a
heartbeat. In a share group, several members can read the same partition. So a member can use a new assignment at once:
it does not have to wait until another member has given up a partition.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from uuid import uuid4

from hmb.client.connection import ConnectionFailed
from hmb.client.coordinator import LEAVE_TIMEOUT, MOVED, CoordinatorConnection
from hmb.client.errors import response_error
from hmb.client.group.errors import FENCED_CODES
from hmb.client.metadata import Cluster
from hmb.protocol.enums import JOIN_EPOCH, LEAVE_EPOCH, CoordinatorType
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from hmb.protocol.topics import PartitionId

RETRY_PAUSE = 0.2  # seconds


class ShareMembership:
    """A member of a share group. The method `start` starts the thread that sends the heartbeats."""

    def __init__(self, cluster: Cluster, group_id: str, topics: Iterable[str]) -> None:
        self.member_id = str(uuid4())
        self._group_id, self._topics = group_id, sorted(set(topics))
        self._coordinator = CoordinatorConnection(cluster, CoordinatorType.GROUP, group_id)
        # The lock of this condition guards the fields below. A thread that holds the lock takes no other lock.
        self._changed = threading.Condition()
        self._assignment: frozenset[PartitionId] | None = None  # None before the member has joined
        self._error: KafkaError | None = None
        self._is_closing = False
        self._epoch = JOIN_EPOCH
        self._thread = threading.Thread(target=self._run, name=f"hmb-share-{group_id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def assignment(self, timeout: float) -> frozenset[PartitionId]:
        """Return the partitions of this member. Wait at most `timeout` seconds for the first assignment.

        If no assignment arrives in this time, return an empty set. Raises KafkaError if the broker refuses the member.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._assignment is not None or self._error is not None, timeout)
            if self._error is not None:
                raise self._error
            return self._assignment or frozenset()

    def close(self) -> None:
        """Leave the group, and end the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(LEAVE_TIMEOUT)

    def _run(self) -> None:
        interval = 0.0
        while self._may_continue(interval):
            try:
                interval = self._heartbeat(self._epoch)
            except ConnectionFailed:
                interval = RETRY_PAUSE
            except KafkaError as error:
                interval = RETRY_PAUSE
                self._refused(error)
        with suppress(ConnectionFailed, KafkaError):
            if self._epoch > JOIN_EPOCH:
                self._heartbeat(LEAVE_EPOCH)
        self._coordinator.forget()

    def _may_continue(self, pause: float) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closing, pause)
            return not self._is_closing and self._error is None

    def _heartbeat(self, epoch: int) -> float:
        """Send a heartbeat. Return the time (s) until the next heartbeat. Raises ConnectionFailed, KafkaError."""
        request = ShareGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            subscribed_topic_names=self._topics if epoch == JOIN_EPOCH else None,
        )
        response: ShareGroupHeartbeatResponse = self._coordinator.send(
            ShareGroupHeartbeatRequest, lambda version: request, timeout=LEAVE_TIMEOUT if epoch == LEAVE_EPOCH else None
        )
        if response.error_code:
            raise response_error(f"share group {self._group_id!r}", response.error_code, response.error_message)
        with self._changed:
            self._epoch = response.member_epoch
            if response.assignment is not None:
                self._assignment = frozenset(
                    PartitionId(topic.topic_id, number)
                    for topic in response.assignment.topic_partitions
                    for number in topic.partitions
                )
                self._changed.notify_all()
        return response.heartbeat_interval_ms / 1000

    def _refused(self, error: KafkaError) -> None:
        if error.code in MOVED:
            self._coordinator.forget()
        with self._changed:
            if error.code in FENCED_CODES:
                self._epoch = JOIN_EPOCH
            elif not error.code.retriable:
                self._error = error
                self._changed.notify_all()
