"""The broker's settings for groups of the classic protocol."""

from __future__ import annotations

from hmb.broker.config.keys import Settings, setting
from hmb.protocol.enums import INT32_MAX


class ClassicGroupConfig(Settings):
    """The settings of a broker for classic groups. Times are in ms."""

    min_session_timeout: int = setting(
        "group.min.session.timeout.ms", 6_000,
        "The shortest session timeout that a member of a classic group may choose.", 0, INT32_MAX
    )
    max_session_timeout: int = setting(
        "group.max.session.timeout.ms", 1_800_000,
        "The longest session timeout that a member of a classic group may choose.", 0, INT32_MAX
    )
    initial_delay: int = setting(
        "group.initial.rebalance.delay.ms", 3_000,
        "The time that a new classic group waits for more members before it rebalances.", 0, INT32_MAX
    )
    max_size: int = setting(
        "group.max.size", INT32_MAX, "The largest number of members of a classic group.", 1, INT32_MAX
    )
