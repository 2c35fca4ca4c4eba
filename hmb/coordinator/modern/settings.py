"""The settings that all kinds of modern groups have: KIP-848 groups, share groups and streams groups."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModernGroupSettings:
    """The settings of one modern group. The group reads them at each heartbeat. Times are in ms.

    - `session_timeout`: the group removes a member that sends no heartbeat for this time.
    - `heartbeat_interval`: the time between two heartbeats of a member.
    - `assignment_interval`: the shortest time between two computations of the target assignment.
    - `max_size`: the maximum number of members.
    """

    session_timeout: int
    heartbeat_interval: int
    assignment_interval: int
    max_size: int
