"""Members of consumer groups. Each member is a coroutine, so that a thousand members need only one thread.

The members use the classic group protocol. A member joins its group with the requests JoinGroup and SyncGroup. After
that, it sends a Heartbeat request at a fixed interval, for example every 3 s. When the response to a heartbeat reports
a rebalance, the member joins again.

The latency of a heartbeat is the time from the moment when the member starts to send the request until it has
read the response. All members share one thread. If a member must wait for this thread, its latency includes the
wait.
"""

from __future__ import annotations

import asyncio
import time
from typing import TypeVar

from hmb.protocol.connection import ClientConnection
from hmb.protocol.consumer_protocol import CONSUMER
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from hmb.protocol.schema import Request, Response

from .. import peers

VERSIONS = {JoinGroupRequest: 5, SyncGroupRequest: 3, HeartbeatRequest: 3}
SESSION_MS = 45_000
ASSIGNMENT = bytes(100)  # Any bytes are valid, because the broker does not decode assignments.
METADATA = bytes(50)
Expected = TypeVar("Expected", bound=Response)


class LoadMember:
    """A member of a group. Each member has its own connection."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.member_id = ""
        self.generation = -1
        self.synced_at = 0.0  # the time (perf_counter) of the last assignment
        self._protocol = ClientConnection("bench")

    async def connect(self, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection(peers.HOST, port)

    async def run(self, interval: float, latencies: list[float]) -> None:
        """Join the group, and send a heartbeat every `interval` seconds until the task is cancelled.

        Append the latency (s) of each heartbeat to `latencies`.
        """
        await self.join()
        while True:
            await asyncio.sleep(interval)
            request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id)
            started = time.perf_counter()
            response = await self._send(request, HeartbeatResponse)
            latencies.append(time.perf_counter() - started)
            if response.error_code:
                await self.join()

    async def join(self) -> None:
        """Send JoinGroup and SyncGroup requests until the member has received an assignment."""
        while True:
            joined = await self._join_group()
            members = [each.member_id for each in joined.members]
            sync = SyncGroupRequest(group_id=self.group, generation_id=joined.generation_id, member_id=self.member_id)
            sync.assignments = [
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=each, assignment=ASSIGNMENT) for each in members
            ]
            synced = await self._send(sync, SyncGroupResponse)
            if synced.error_code == 0:
                self.generation, self.synced_at = joined.generation_id, time.perf_counter()
                return

    async def _join_group(self) -> JoinGroupResponse:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=METADATA)
        while True:
            request = JoinGroupRequest(group_id=self.group, member_id=self.member_id, protocol_type=CONSUMER)
            request.session_timeout_ms = request.rebalance_timeout_ms = SESSION_MS
            request.protocols = [protocol]
            joined = await self._send(request, JoinGroupResponse)
            self.member_id = joined.member_id
            if joined.error_code == 0:
                return joined
            if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                await asyncio.sleep(0.1)  # The coordinator is still creating its internal topic or loading its groups.

    async def _send(self, request: Request, expected: type[Expected]) -> Expected:
        parts = self._protocol.request(request, VERSIONS[type(request)])
        self._writer.write(b"".join(parts))  # type: ignore[arg-type]
        size = int.from_bytes(await self._reader.readexactly(4))
        _, response = self._protocol.receive(memoryview(await self._reader.readexactly(size)))
        if not isinstance(response, expected):
            raise peers.PeerFailed(f"the broker's response is not a {expected.__name__}")
        return response
