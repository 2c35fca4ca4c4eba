"""Creates the coordinators of a broker: of groups, of transactions and of share groups.

A coordinator stores its state in an internal topic, its *journal*. The functions of this module create the
coordinators. They give each coordinator what it needs from the broker: its topic, the broker's clock, and the current
settings. A client may change the settings while the broker runs. So `group_coordinator` passes functions that return
the settings of a group. The coordinator calls such a function each time it needs the settings, so a change applies at
once.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from hmb.broker.config.dynamic import DynamicConfig
from hmb.broker.config.groups.overrides import (
    classic_group_settings,
    consumer_group_settings,
    share_group_settings,
    streams_group_settings,
)
from hmb.broker.topics.group_topics import GroupTopics
from hmb.broker.topics.journal import JournalTopic
from hmb.broker.topics.registry import Topics
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.producer_ids import ProducerIds
from hmb.coordinator.transactions.coordinator import TransactionCoordinator
from hmb.coordinator.transactions.markers import MarkerWriter
from hmb.protocol.topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from hmb.storage.clock import BrokerClock

if TYPE_CHECKING:
    from hmb.coordinator.share.requests import ShareGroupRequests


def group_coordinator(topics: Topics, configs: DynamicConfig, clock: BrokerClock) -> GroupCoordinator:
    """Create the coordinator of all groups. It stores its state in the topic `__consumer_offsets`."""
    return GroupCoordinator(
        journal_of(OFFSETS_TOPIC, topics, configs, clock),
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
    """Create the coordinator of all transactions. It stores its state in the topic `__transaction_state`."""
    return TransactionCoordinator(
        journal_of(TRANSACTIONS_TOPIC, topics, configs, clock),
        producer_ids,
        MarkerWriter(topics.log_of, topics.logs, groups, partial(_must_sync, configs)),
        lambda: configs.current.transaction_max_timeout,
        clock=clock.now_ms,
    )


class ShareGroups:
    """Creates the objects that handle share groups, such as the share coordinator, when the broker first needs them.

    Most brokers have no share groups, and the modules for share groups take 20 ms to import. If the topic
    `__share_group_state` exists, the broker creates the objects when it starts. Otherwise, the first request for a
    share group creates them. Thread-safe.
    """

    def __init__(self, topics: Topics, configs: DynamicConfig, groups: GroupCoordinator, clock: BrokerClock) -> None:
        self._topics, self._configs, self._groups, self._clock = topics, configs, groups, clock
        self._lock = threading.Lock()  # held while the parts are created; a thread that holds it takes no other lock
        self.created: ShareGroupRequests | None = None

    @property
    def requests(self) -> ShareGroupRequests:
        """The object that handles the requests for share groups. The first access creates it."""
        with self._lock:
            if self.created is None:
                from hmb.broker.share.creation import share_group_requests

                self.created = share_group_requests(self._topics, self._configs, self._groups, self._clock)
                self.created.coordinator.start()
            return self.created

    def start(self) -> None:
        """Create the objects that handle share groups, if the topic `__share_group_state` exists.

        If the topic does not exist, the first request for a share group creates these objects.
        """
        if self._topics.get(SHARE_STATE_TOPIC) is not None:
            _ = self.requests

    def stop(self, deadline: float) -> None:
        if self.created is not None:
            self.created.coordinator.stop(deadline)

    def prune(self) -> None:
        """Delete old records of `__share_group_state`."""
        if self.created is not None:
            self.created.coordinator.prune(self._delete_before)

    def _delete_before(self, ends: dict[int, int]) -> None:
        """Delete old records of `__share_group_state`. `ends` maps the number of a partition to an offset.

        In each of these partitions, the method deletes the records below the offset.
        """
        starts = {TopicPartition(SHARE_STATE_TOPIC, number): offset for number, offset in ends.items()}
        self._topics.delete_records(starts)

    def on_topics_deleted(self, ids: Mapping[str, UUID]) -> None:
        """Delete the share-partitions of deleted topics. `ids` maps the name of each deleted topic to its id."""
        if self.created is not None:
            self.created.on_topics_deleted(ids)


def journal_of(topic: str, topics: Topics, configs: DynamicConfig, clock: BrokerClock) -> Journal:
    journal_topic = JournalTopic(topics, configs.current, topic)
    return Journal(journal_topic, must_sync=partial(_must_sync, configs), clock=clock.now_ms)


def _must_sync(configs: DynamicConfig) -> bool:
    return configs.current.flush_acks_all
