"""The broker's settings for consumer groups (KIP-848).

If a group does not have a setting of its own, such as `consumer.session.timeout.ms`, the broker's setting
`group.consumer.session.timeout.ms` applies.
"""

from __future__ import annotations

from hmb.broker.config.keys import Settings, setting
from hmb.broker.config.keys import dynamic_setting as _dynamic
from hmb.coordinator.consumer.settings import MigrationPolicy
from hmb.protocol.enums import INT32_MAX


class ConsumerGroupConfig(Settings):
    """The settings of a broker for consumer groups. Times are in ms."""

    session_timeout: int = setting(
        "group.consumer.session.timeout.ms", 45_000,
        "A member of a consumer group that sends no heartbeat for this time is removed.", 1, INT32_MAX
    )
    min_session_timeout: int = setting(
        "group.consumer.min.session.timeout.ms", 45_000,
        "The shortest session timeout that may be set for a consumer group.", 1, INT32_MAX
    )
    max_session_timeout: int = setting(
        "group.consumer.max.session.timeout.ms", 60_000,
        "The longest session timeout that may be set for a consumer group.", 1, INT32_MAX
    )
    heartbeat_interval: int = setting(
        "group.consumer.heartbeat.interval.ms", 5_000,
        "The time between two heartbeats of a member of a consumer group.", 1, INT32_MAX
    )
    min_heartbeat_interval: int = setting(
        "group.consumer.min.heartbeat.interval.ms", 5_000,
        "The shortest heartbeat interval that may be set for a consumer group.", 1, INT32_MAX
    )
    max_heartbeat_interval: int = setting(
        "group.consumer.max.heartbeat.interval.ms", 15_000,
        "The longest heartbeat interval that may be set for a consumer group.", 1, INT32_MAX
    )
    assignment_interval: int = _dynamic(
        "group.consumer.assignment.interval.ms", 1_000,
        "The shortest time between two assignments of a consumer group.", 0, INT32_MAX
    )
    min_assignment_interval: int = setting(
        "group.consumer.min.assignment.interval.ms", 0,
        "The shortest assignment interval that may be set for a consumer group.", 0, INT32_MAX
    )
    max_assignment_interval: int = setting(
        "group.consumer.max.assignment.interval.ms", 15_000,
        "The longest assignment interval that may be set for a consumer group.", 0, INT32_MAX
    )
    max_size: int = setting(
        "group.consumer.max.size", INT32_MAX, "The largest number of members of a consumer group.", 1, INT32_MAX
    )
    migration_policy: str = setting(
        "group.consumer.migration.policy", MigrationPolicy.BIDIRECTIONAL.value,
        "Whether a group with members may move from the classic protocol to KIP-848 (upgrade) and back (downgrade).",
        choices=tuple(policy.value for policy in MigrationPolicy)
    )
