"""Creates the coordinators of a broker: of groups, of transactions and of share groups.

A coordinator stores its state in an internal topic, its *journal*. The functions of this module connect each
coordinator with its topic, with the topics of the cluster, with the broker's clock, and with the settings that clients
may change while the broker runs. For example, `group_coordinator` passes a function to the coordinator of groups that
returns the settings of a group. The coordinator calls this function each time that it needs the settings, so a changed
setting applies at once.
"""

from __future__ import annotations

from functools import partial

from hmb.broker.config.dynamic import DynamicConfig
from hmb.broker.config.group_overrides import (
    classic_group_settings,
    consumer_group_settings,
    share_group_settings,
    streams_group_settings,
)
from hmb.broker.config.share_groups import duration_ms
from hmb.broker.topics.group_topics import GroupTopics
from hmb.broker.topics.journal import JournalTopic
from hmb.broker.topics.registry import Topics
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.producer_ids import ProducerIds
from hmb.coordinator.share.coordinator import ShareCoordinator
from hmb.coordinator.share.partitions import SharePartitions
from hmb.coordinator.share.requests import ShareGroupRequests
from hmb.coordinator.share.settings import EARLIEST, LATEST
from hmb.coordinator.transactions.coordinator import TransactionCoordinator
from hmb.coordinator.transactions.markers import MarkerWriter
from hmb.protocol.topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from hmb.storage.clock import BrokerClock
from hmb.storage.log import Log


def group_coordinator(topics: Topics, configs: DynamicConfig, clock: BrokerClock) -> GroupCoordinator:
    """Create the coordinator of all groups, with its journal in the topic `__consumer_offsets`."""
    return GroupCoordinator(
        _journal(OFFSETS_TOPIC, topics, configs, clock),
        classic_group_settings(configs.current),
        GroupTopics(topics),
        partial(consumer_group_settings, configs),
        partial(share_group_settings, configs),
        partial(streams_group_settings, configs),
        wall_clock=clock.now_ms,
        clock=clock.monotonic_ms,
        events=topics.events,
    )


def transaction_coordinator(
    topics: Topics, configs: DynamicConfig, producer_ids: ProducerIds, groups: GroupCoordinator, clock: BrokerClock
) -> TransactionCoordinator:
    """Create the coordinator of all transactions, with its journal in the topic `__transaction_state`."""
    return TransactionCoordinator(
        _journal(TRANSACTIONS_TOPIC, topics, configs, clock),
        producer_ids,
        MarkerWriter(topics.log_of, topics.logs, groups, partial(_must_sync, configs)),
        lambda: configs.current.transaction_max_timeout,
        clock=clock.now_ms,
    )


def share_group_requests(
    topics: Topics, configs: DynamicConfig, groups: GroupCoordinator, clock: BrokerClock
) -> ShareGroupRequests:
    """Create the object that handles requests of share groups, with its share coordinator and share-partitions."""

    def first_offset(log: Log, reset: str) -> int:
        """Return the offset at which a group begins to read a log. `reset` is the group's `share.auto.offset.reset`."""
        if reset == EARLIEST:
            return log.log_start_offset
        if reset != LATEST and (found := log.offset_for_timestamp(clock.now_ms() - duration_ms(reset))) is not None:
            return found.offset
        return log.high_watermark

    journal = _journal(SHARE_STATE_TOPIC, topics, configs, clock)
    updates = configs.current.share_updates
    coordinator = ShareCoordinator(journal, updates_per_snapshot=updates, clock=clock.now_ms)
    settings = partial(share_group_settings, configs)
    partitions = SharePartitions(coordinator, settings, first_offset, groups.timer, clock.monotonic_ms)
    return ShareGroupRequests(groups, coordinator, partitions, GroupTopics(topics))


def _journal(topic: str, topics: Topics, configs: DynamicConfig, clock: BrokerClock) -> Journal:
    journal_topic = JournalTopic(topics, configs.current, topic)
    return Journal(journal_topic, must_sync=partial(_must_sync, configs), clock=clock.now_ms)


def _must_sync(configs: DynamicConfig) -> bool:
    return configs.current.flush_acks_all
