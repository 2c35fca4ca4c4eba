"""The settings that all kinds of modern groups have: KIP-848 groups, share groups and streams groups."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class ModernGroupSettings:
    """The settings of one group, which the group reads at each heartbeat of a member. Times are in ms.

    - `session_timeout`: the group removes a member that sends no heartbeat for this time.
    - `heartbeat_interval`: the time between two heartbeats of a member.
    - `assignment_interval`: the shortest time between two computations of the assignment.
    - `max_size`: the largest number of members.
    """

    session_timeout: int
    heartbeat_interval: int
    assignment_interval: int
    max_size: int


class MigrationPolicy(Enum):
    """The conversions that the broker allows for a group with members (`group.consumer.migration.policy`).

    An *upgrade* makes a classic group a KIP-848 group, and a *downgrade* makes a KIP-848 group a classic group.
    """

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings(ModernGroupSettings):
    """The settings of a KIP-848 group. Their names begin with `consumer.`, for example `consumer.session.timeout.ms`.

    The migration policy is a setting of the broker, and has the same value for all groups.
    """

    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
