"""Creates parts of the broker from its settings, when the broker starts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from hmb.broker.config.broker_config import ALIASES, BrokerConfig
from hmb.broker.config.dynamic import DynamicConfig
from hmb.broker.config.group_configs import classic_group_settings, consumer_group_settings, share_group_settings
from hmb.broker.config.keys import ConfigError
from hmb.broker.security.quotas.window import WindowSize
from hmb.broker.topics.group_topics import GroupTopics
from hmb.broker.topics.journal import JournalTopic
from hmb.broker.topics.registry import Topics
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.producer_ids import ProducerIds
from hmb.coordinator.transactions.coordinator import TransactionCoordinator
from hmb.coordinator.transactions.markers import MarkerWriter
from hmb.protocol.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from hmb.storage.clock import BrokerClock


def group_coordinator(topics: Topics, configs: DynamicConfig, clock: BrokerClock) -> GroupCoordinator:
    """Create the coordinator of all groups, with its journal in the topic `__consumer_offsets`."""
    config = configs.current

    def must_sync() -> bool:
        return configs.current.flush_acks_all

    journal = Journal(JournalTopic(topics, config, OFFSETS_TOPIC), must_sync=must_sync, clock=clock.now_ms)
    return GroupCoordinator(
        journal,
        classic_group_settings(config),
        GroupTopics(topics),
        partial(consumer_group_settings, configs),
        partial(share_group_settings, configs),
        wall_clock=clock.now_ms,
        clock=clock.monotonic_ms,
        events=topics.events,
    )


def transaction_coordinator(
    topics: Topics, configs: DynamicConfig, producer_ids: ProducerIds, groups: GroupCoordinator, clock: BrokerClock
) -> TransactionCoordinator:
    """Create the coordinator of all transactions, with its journal in the topic `__transaction_state`."""

    def must_sync() -> bool:
        return configs.current.flush_acks_all

    topic = JournalTopic(topics, configs.current, TRANSACTIONS_TOPIC)
    journal = Journal(topic, must_sync=must_sync, clock=clock.now_ms)
    markers = MarkerWriter(topics.log_of, topics.logs, groups, must_sync)
    return TransactionCoordinator(
        journal, producer_ids, markers, lambda: configs.current.transaction_max_timeout, clock=clock.now_ms
    )


def window_sizes(config: BrokerConfig) -> tuple[WindowSize, WindowSize]:
    """Return the size of the windows of most quotas, and the size for the quota controller_mutation_rate."""
    return (
        WindowSize(config.quota_samples, config.quota_sample_seconds * 1000),
        WindowSize(config.mutation_samples, config.mutation_sample_seconds * 1000),
    )


def data_dir_of(data_dir: str | Path | None, properties: Mapping[str, str], config: BrokerConfig) -> Path | None:
    """Return the data directory: the argument of the broker, or the setting log.dirs, or None. Raises ConfigError."""
    if data_dir is None and any(ALIASES.get(name, name) == "log.dirs" for name in properties):
        data_dir = _only_directory(config.log_dirs)
    if data_dir == "":  # Path("") would be the current directory.
        raise ConfigError("data_dir is empty; name a directory")
    return Path(data_dir) if data_dir is not None else None


def _only_directory(log_dirs: str) -> str:
    if not log_dirs or "," in log_dirs:
        raise ConfigError("name one directory: a broker stores all its data in one directory", "log.dirs", log_dirs)
    return log_dirs
