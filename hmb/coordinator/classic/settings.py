"""The broker settings of classic groups."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The values of the broker settings for classic groups, such as `group.max.size`. Times are in ms."""

    min_session_timeout: int = 6_000
    max_session_timeout: int = 1_800_000
    initial_delay: int = 3_000
    max_size: int = 2**31 - 1
