"""Finding a group's coordinator, and talking to it.

A group is kept by one broker, its *coordinator*: the leader of that partition of __consumer_offsets into which the
group's offsets go. Any broker knows who that is (FindCoordinator; ConsumerMetadata in 0.8.2). It moves when its broker
dies; then the old one answers NOT_COORDINATOR, or nothing at all, and is to be looked for anew.
"""

from typing import Any

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.coordinators import MOVED, find_coordinator
from hmb.client.group.interface import GroupSettings
from hmb.client.metadata import Cluster
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.schema import Request

FIRST_LEAVE_OF_SEVERAL = LeaveGroupRequest.first_version("members")


class GroupCoordinator:
    """A connection to wherever the group's coordinator is. Belongs to one thread, but for `interrupt`."""

    def __init__(self, cluster: Cluster, settings: GroupSettings) -> None:
        self._cluster, self._settings = cluster, settings
        self._connection: Connection | None = None
        self._is_interrupted = False

    def connection(self) -> Connection:
        """To the coordinator. ConnectionFailed; KafkaError where the cluster knows none (COORDINATOR_NOT_AVAILABLE)."""
        if self._connection is None:
            node = find_coordinator(self._cluster, CoordinatorType.GROUP, self._settings.group_id)
            self._connection = self._cluster.connect(node)
        return self._connection

    def send(self, request: Request, timeout: float | None = None) -> Any:
        """The coordinator's answer; it is looked for anew the next time if it was the wrong one, or gone."""
        connection = self.connection()
        try:
            version = connection.version_of(type(request))
            connection.post(_for_version(request, version), version)
            # Looked at between opening and waiting, so that `interrupt` is never too early or too late.
            if self._is_interrupted:
                connection.interrupt()
            response = connection.receive(timeout)
        except ConnectionFailed:
            self.forget()
            raise
        if response.error_code in MOVED:
            self.forget()
        return response

    def forget(self) -> None:
        """Look for it anew, the next time."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def interrupt(self) -> None:
        """For another thread: end a request that is under way, and let none wait for its answer any more."""
        self._is_interrupted = True
        connection = self._connection
        if connection is not None:
            connection.interrupt()


def _for_version(request: Request, version: int) -> Request:
    """Old versions of LeaveGroup name one member only."""
    if isinstance(request, LeaveGroupRequest) and version < FIRST_LEAVE_OF_SEVERAL:
        return LeaveGroupRequest(group_id=request.group_id, member_id=request.members[0].member_id)
    return request
