"""The default settings of groups, with the changes that a test needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hmb.broker.config.broker import BrokerConfig
from hmb.broker.config.groups.overrides import classic_group_settings
from hmb.coordinator.classic.settings import GroupSettings
from hmb.coordinator.consumer.settings import ConsumerGroupSettings

_DEFAULTS = BrokerConfig()


def group_settings(**changes: int) -> GroupSettings:
    """Return the default settings of classic groups, with these changes."""
    return classic_group_settings(_DEFAULTS)._replace(**changes)


def consumer_group_settings(**changes: Any) -> ConsumerGroupSettings:
    """Return the default settings of KIP-848 groups, with these changes."""
    settings = ConsumerGroupSettings(
        session_timeout=_DEFAULTS.consumer.session_timeout,
        heartbeat_interval=_DEFAULTS.consumer.heartbeat_interval,
        assignment_interval=_DEFAULTS.consumer.assignment_interval,
        max_size=_DEFAULTS.consumer.max_size,
    )
    return replace(settings, **changes)
