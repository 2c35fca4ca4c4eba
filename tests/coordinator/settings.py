"""The default settings of groups, with the changes that a test needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hmb.broker.config.broker import BrokerConfig
from hmb.broker.config.group_overrides import classic_group_settings
from hmb.coordinator.classic.settings import GroupSettings
from hmb.coordinator.modern.settings import ConsumerGroupSettings

_DEFAULTS = BrokerConfig()


def group_settings(**changes: int) -> GroupSettings:
    """Return the default settings of classic groups, with these changes."""
    return classic_group_settings(_DEFAULTS)._replace(**changes)


def consumer_group_settings(**changes: Any) -> ConsumerGroupSettings:
    """Return the default settings of KIP-848 groups, with these changes."""
    settings = ConsumerGroupSettings(
        session_timeout=_DEFAULTS.consumer_session,
        heartbeat_interval=_DEFAULTS.consumer_heartbeat,
        assignment_interval=_DEFAULTS.consumer_assignment,
        max_size=_DEFAULTS.consumer_max_size,
    )
    return replace(settings, **changes)
