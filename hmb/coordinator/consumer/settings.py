"""The settings of a KIP-848 group.

The setting `group.consumer.migration.policy` determines whether the broker may convert a classic group with
members to a KIP-848 group, or back.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hmb.coordinator.modern.settings import ModernGroupSettings


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
