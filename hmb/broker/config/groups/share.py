"""The broker's settings for share groups (KIP-932), and the settings that a single share group can have.

A share group can have its own value of a setting, for example of `share.record.lock.duration.ms`. If a group
has no value of its own, it uses the value of a broker setting: here `group.share.record.lock.duration.ms`.
Three settings of groups have no such broker setting. `GROUP_ONLY` declares these three settings, with their
defaults.
"""

from __future__ import annotations

import re

from hmb.broker.config.keys import ConfigError, ConfigKey, Settings, setting
from hmb.broker.config.keys import dynamic_setting as _dynamic
from hmb.coordinator.share.settings import BY_DURATION, EARLIEST, LATEST
from hmb.protocol.enums import INT32_MAX, ISOLATION_LEVELS, ConfigType
from hmb.units import MIB

DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)


class ShareGroupConfig(Settings):
    """The settings of a broker for share groups. Times are in ms."""

    session_timeout: int = setting(
        "group.share.session.timeout.ms", 45_000,
        "A member of a share group that sends no heartbeat for this time is removed.", 1, INT32_MAX
    )
    min_session_timeout: int = setting(
        "group.share.min.session.timeout.ms", 45_000,
        "The shortest session timeout that may be set for a share group.", 1, INT32_MAX
    )
    max_session_timeout: int = setting(
        "group.share.max.session.timeout.ms", 60_000,
        "The longest session timeout that may be set for a share group.", 1, INT32_MAX
    )
    heartbeat_interval: int = setting(
        "group.share.heartbeat.interval.ms", 5_000,
        "The time between two heartbeats of a member of a share group.", 1, INT32_MAX
    )
    min_heartbeat_interval: int = setting(
        "group.share.min.heartbeat.interval.ms", 5_000,
        "The shortest heartbeat interval that may be set for a share group.", 1, INT32_MAX
    )
    max_heartbeat_interval: int = setting(
        "group.share.max.heartbeat.interval.ms", 15_000,
        "The longest heartbeat interval that may be set for a share group.", 1, INT32_MAX
    )
    assignment_interval: int = _dynamic(
        "group.share.assignment.interval.ms", 1_000,
        "The shortest time between two assignments of a share group.", 0, INT32_MAX
    )
    min_assignment_interval: int = setting(
        "group.share.min.assignment.interval.ms", 0,
        "The shortest assignment interval that may be set for a share group.", 0, INT32_MAX
    )
    max_assignment_interval: int = setting(
        "group.share.max.assignment.interval.ms", 15_000,
        "The longest assignment interval that may be set for a share group.", 0, INT32_MAX
    )
    max_size: int = setting(
        "group.share.max.size", 200,
        "The largest number of members of a share group.", 1, 1_000
    )
    lock_duration: int = setting(
        "group.share.record.lock.duration.ms", 30_000,
        "A member that has acquired a record holds a lock on it for this time.", 1000, 3_600_000
    )
    min_lock_duration: int = setting(
        "group.share.min.record.lock.duration.ms", 15_000,
        "The shortest lock duration that may be set for a share group.", 1000, 30_000
    )
    max_lock_duration: int = setting(
        "group.share.max.record.lock.duration.ms", 60_000,
        "The longest lock duration that may be set for a share group.", 30000, 3_600_000
    )
    delivery_limit: int = setting(
        "group.share.delivery.count.limit", 5,
        "A share group archives a record after this number of deliveries.", 2, 10
    )
    min_delivery_limit: int = setting(
        "group.share.min.delivery.count.limit", 2,
        "The smallest delivery count limit that may be set for a share group.", 2, 5
    )
    max_delivery_limit: int = setting(
        "group.share.max.delivery.count.limit", 10,
        "The largest delivery count limit that may be set for a share group.", 5, 25
    )
    max_locks: int = setting(
        "group.share.partition.max.record.locks", 2_000,
        "The largest number of records of one partition that are in flight in a share group.", 100, 10_000
    )
    smallest_max_locks: int = setting(
        "group.share.min.partition.max.record.locks", 100,
        "The smallest number of records in flight that may be set for a share group.", 100, 2_000
    )
    largest_max_locks: int = setting(
        "group.share.max.partition.max.record.locks", 4_000,
        "The largest number of records in flight that may be set for a share group.", 2000, 10_000
    )
    max_sessions: int = setting(
        "group.share.max.share.sessions", 2_000,
        "The largest number of share sessions.", 1, INT32_MAX
    )
    state_partitions: int = setting(
        "share.coordinator.state.topic.num.partitions", 50,
        "The number of partitions of __share_group_state.", 1, INT32_MAX
    )
    state_segment_bytes: int = setting(
        "share.coordinator.state.topic.segment.bytes", 100 * MIB,
        "The size of a segment of __share_group_state.", 1, INT32_MAX
    )
    updates_per_snapshot: int = setting(
        "share.coordinator.snapshot.update.records.per.snapshot", 500,
        "The number of ShareUpdate records between two ShareSnapshot records.", 0, INT32_MAX
    )


GROUP_ONLY = {
    key.name: key
    for key in (
        ConfigKey(
            "share.auto.offset.reset", ConfigType.STRING, LATEST,
            "Where a share group begins to read: earliest, latest or by_duration:, followed by a duration like PT1H.",
        ),
        ConfigKey(
            "share.isolation.level", ConfigType.STRING, "read_uncommitted",
            "Whether a share group also delivers records of open and aborted transactions.",
            choices=tuple(sorted(ISOLATION_LEVELS)),
        ),
        ConfigKey(
            "share.renew.acknowledge.enable", ConfigType.BOOLEAN, True,
            "Whether the members of a share group may renew their acquisition locks.",
        ),
    )
}
"""The settings of a share group that have no default among the broker's settings."""


def check_offset_reset(text: str) -> None:
    """Raise ConfigError if `text` is not a value of `share.auto.offset.reset`."""
    if text not in (EARLIEST, LATEST):
        duration_ms(text)


def duration_ms(text: str) -> int:
    """Return the duration in a value such as `by_duration:PT1H30M` (ISO 8601), in ms. Raises ConfigError."""
    found = DURATION.fullmatch(text.removeprefix(BY_DURATION)) if text.startswith(BY_DURATION) else None
    if found is None or not any(found.groups()):
        why = "the value must be earliest, latest or by_duration:, followed by a duration like P1D or PT1H30M"
        raise ConfigError(why, "share.auto.offset.reset", text)
    days, hours, minutes, seconds = (float(number or 0) for number in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
