"""The broker's settings for streams groups (KIP-1071).

A streams group can have its own value of a setting, for example of `streams.num.standby.replicas`. For a group without
its own value, the broker's setting applies: `group.streams.num.standby.replicas`.
"""

from __future__ import annotations

from hmb.broker.config.keys import Settings, setting
from hmb.broker.config.keys import dynamic_setting as _dynamic
from hmb.protocol.enums import INT32_MAX


class StreamsGroupConfig(Settings):
    """The settings of a broker for streams groups. Times are in ms."""

    session_timeout: int = setting(
        "group.streams.session.timeout.ms", 45_000,
        "A member of a streams group that sends no heartbeat for this time is removed.", 1, INT32_MAX
    )
    min_session_timeout: int = setting(
        "group.streams.min.session.timeout.ms", 45_000,
        "The shortest session timeout that may be set for a streams group.", 1, INT32_MAX
    )
    max_session_timeout: int = setting(
        "group.streams.max.session.timeout.ms", 60_000,
        "The longest session timeout that may be set for a streams group.", 1, INT32_MAX
    )
    heartbeat_interval: int = setting(
        "group.streams.heartbeat.interval.ms", 5_000,
        "The time between two heartbeats of a member of a streams group.", 1, INT32_MAX
    )
    min_heartbeat_interval: int = setting(
        "group.streams.min.heartbeat.interval.ms", 5_000,
        "The shortest heartbeat interval that may be set for a streams group.", 1, INT32_MAX
    )
    max_heartbeat_interval: int = setting(
        "group.streams.max.heartbeat.interval.ms", 15_000,
        "The longest heartbeat interval that may be set for a streams group.", 1, INT32_MAX
    )
    assignment_interval: int = _dynamic(
        "group.streams.assignment.interval.ms", 1_000,
        "The shortest time between two assignments of a streams group.", 0, INT32_MAX
    )
    min_assignment_interval: int = setting(
        "group.streams.min.assignment.interval.ms", 0,
        "The shortest assignment interval that may be set for a streams group.", 0, INT32_MAX
    )
    max_assignment_interval: int = setting(
        "group.streams.max.assignment.interval.ms", 15_000,
        "The longest assignment interval that may be set for a streams group.", 0, INT32_MAX
    )
    max_size: int = setting(
        "group.streams.max.size", INT32_MAX, "The largest number of members of a streams group.", 1, INT32_MAX
    )
    standby_replicas: int = setting(
        "group.streams.num.standby.replicas", 0,
        "The number of standby tasks for each task of a streams group that has a state.", 0, INT32_MAX
    )
    max_standby_replicas: int = setting(
        "group.streams.max.standby.replicas", 2,
        "The largest number of standby tasks for each task that may be set for a streams group.", 0, INT32_MAX
    )
    initial_delay: int = setting(
        "group.streams.initial.rebalance.delay.ms", 3_000,
        "The time that an empty streams group waits for more members before its first assignment.", 0, INT32_MAX
    )
