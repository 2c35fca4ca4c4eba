"""Creates the parts of the coordinator layer that share groups need.

The broker imports this module only when it needs share groups (`ShareGroups` in hmb/broker/coordinators.py).
"""

from __future__ import annotations

from functools import partial

from hmb.broker.config.dynamic import DynamicConfig
from hmb.broker.config.groups.overrides import share_group_settings
from hmb.broker.config.groups.share import duration_ms
from hmb.broker.coordinators import journal_of
from hmb.broker.topics.group_topics import GroupTopics
from hmb.broker.topics.registry import Topics
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.share.coordinator import ShareCoordinator
from hmb.coordinator.share.partitions import SharePartitions
from hmb.coordinator.share.requests import ShareGroupRequests
from hmb.coordinator.share.settings import EARLIEST, LATEST
from hmb.protocol.topics import SHARE_STATE_TOPIC
from hmb.storage.clock import BrokerClock
from hmb.storage.log import Log


def share_group_requests(
    topics: Topics, configs: DynamicConfig, groups: GroupCoordinator, clock: BrokerClock
) -> ShareGroupRequests:
    """Create the handler of share group requests, its share coordinator and its table of share-partitions."""

    def first_offset(log: Log, reset: str) -> int:
        """Return the offset at which a group begins to read a log. `reset` is the group's `share.auto.offset.reset`."""
        if reset == EARLIEST:
            return log.log_start_offset
        if reset != LATEST and (found := log.offset_for_timestamp(clock.now_ms() - duration_ms(reset))) is not None:
            return found.offset
        return log.high_watermark

    journal = journal_of(SHARE_STATE_TOPIC, topics, configs, clock)
    updates = configs.current.share.updates_per_snapshot
    coordinator = ShareCoordinator(journal, updates_per_snapshot=updates, clock=clock.now_ms)
    settings = partial(share_group_settings, configs)
    partitions = SharePartitions(coordinator, settings, first_offset, groups.timer, clock.monotonic_ms)
    return ShareGroupRequests(groups, coordinator, partitions, GroupTopics(topics))
