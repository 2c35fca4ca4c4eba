"""The broker's settings for streams groups (KIP-1071).

A streams group can have its own value of a setting, for example of `streams.num.standby.replicas`. For a group without
its own value, the broker's setting applies: `group.streams.num.standby.replicas`.
"""

from __future__ import annotations

from hmb.broker.config.keys import Settings, setting
from hmb.broker.config.keys import dynamic_setting as _dynamic
from hmb.protocol.enums import INT32_MAX


class StreamsConfig(Settings):
    """The settings of a broker for streams groups. Times are in ms."""

    streams_session: int = setting(
        "group.streams.session.timeout.ms", 45_000,
        "A member of a streams group that sends no heartbeat for this time is removed.", 1, INT32_MAX
    )
    streams_session_min: int = setting(
        "group.streams.min.session.timeout.ms", 45_000,
        "The shortest session timeout that may be set for a streams group.", 1, INT32_MAX
    )
    streams_session_max: int = setting(
        "group.streams.max.session.timeout.ms", 60_000,
        "The longest session timeout that may be set for a streams group.", 1, INT32_MAX
    )
    streams_heartbeat: int = setting(
        "group.streams.heartbeat.interval.ms", 5_000,
        "The time between two heartbeats of a member of a streams group.", 1, INT32_MAX
    )
    streams_heartbeat_min: int = setting(
        "group.streams.min.heartbeat.interval.ms", 5_000,
        "The shortest heartbeat interval that may be set for a streams group.", 1, INT32_MAX
    )
    streams_heartbeat_max: int = setting(
        "group.streams.max.heartbeat.interval.ms", 15_000,
        "The longest heartbeat interval that may be set for a streams group.", 1, INT32_MAX
    )
    streams_assignment: int = _dynamic(
        "group.streams.assignment.interval.ms", 1_000,
        "The shortest time between two assignments of a streams group.", 0, INT32_MAX
    )
    streams_assignment_min: int = setting(
        "group.streams.min.assignment.interval.ms", 0,
        "The shortest assignment interval that may be set for a streams group.", 0, INT32_MAX
    )
    streams_assignment_max: int = setting(
        "group.streams.max.assignment.interval.ms", 15_000,
        "The longest assignment interval that may be set for a streams group.", 0, INT32_MAX
    )
    streams_max_size: int = setting(
        "group.streams.max.size", INT32_MAX, "The largest number of members of a streams group.", 1, INT32_MAX
    )
    streams_standby: int = setting(
        "group.streams.num.standby.replicas", 0,
        "The number of standby tasks for each task of a streams group that has a state.", 0, INT32_MAX
    )
    streams_standby_max: int = setting(
        "group.streams.max.standby.replicas", 2,
        "The largest number of standby tasks for each task that may be set for a streams group.", 0, INT32_MAX
    )
    streams_initial_delay: int = setting(
        "group.streams.initial.rebalance.delay.ms", 3_000,
        "The time that an empty streams group waits for more members before its first assignment.", 0, INT32_MAX
    )
