"""Declares the broker settings of classic groups."""

from __future__ import annotations

from typing import NamedTuple


class GroupSettings(NamedTuple):
    """The values of the broker's settings for classic groups, such as `group.max.size`. Times are in ms."""

    min_session_timeout: int
    max_session_timeout: int
    initial_delay: int
    max_size: int
