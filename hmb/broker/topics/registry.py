"""The registry of topics. The registry creates, changes and deletes topics, and finds them in a table (table.py).

A topic has a name, an id, and one log for each partition. The directory of a log has the name of its partition,
for example `orders-0`, so the broker can find the log (storage/log_manager.py). The file `topics.json` contains
the settings of all topics (store.py).

A crash can interrupt a change, for example the creation of a topic. The broker completes the change at its next
start (interrupted_changes.py). If the crash comes before the first write to disk, the topics stay unchanged.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from hmb.broker.config.broker import TOPIC_KEYS, BrokerConfig, check_consistency, log_config
from hmb.broker.config.keys import ConfigError
from hmb.broker.errors import outcome_of
from hmb.broker.topics.internal import internal_topics
from hmb.broker.topics.interrupted_changes import finish_interrupted_changes
from hmb.broker.topics.store import ADOPTED, StoredTopic, TopicStore
from hmb.broker.topics.table import TopicTable
from hmb.broker.topics.topic import MAX_TOPIC_PARTITIONS, NewPartitions, Topic, check_count, metric_name
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import NO_TOPIC_ID, TopicPartition, check_topic_name
from hmb.storage.config import LogConfig
from hmb.storage.events import EventKind, EventLog
from hmb.storage.log import Log
from hmb.storage.log_manager import LogManager, NewLog
from hmb.storage.state import trash
from hmb.storage.state.identity import DataDirectoryError
from hmb.storage.state.manifest import TOPICS_FILE

LOGGER = logging.getLogger(__name__)
Forget = Callable[[Mapping[str, uuid.UUID]], None]  # a function that gets the name and the id of each deleted topic


class Topics:
    """All topics of the broker. Only one thread at a time changes topics. A thread that reads topics takes no lock.

    - `_table` contains the topics. Each partition of these topics has a log in the log manager.
    - The file topics.json also contains each topic in `_table`. It can contain more topics: for example, a topic
      that is being deleted is no longer in `_table`, but is still in the file.
    - `version` increases when topics or partitions are created, or when topics are deleted.
    """

    def __init__(self, logs: LogManager, config: BrokerConfig) -> None:
        """Open all logs in the data directory. Raises DataDirectoryError."""
        self._logs = logs
        self._default = config.log
        # This dict maps the name of each internal topic, such as __consumer_offsets, to its settings. They also apply
        # if another broker, for example Kafka, has created the topic in this data directory.
        self._internal = {name: topic.configs for name, topic in internal_topics(config).items()}
        # A thread must hold `_lock` to change the table of topics or the file topics.json. If a thread needs `_lock`
        # and the log manager's lock, it takes `_lock` first.
        self._lock = threading.Lock()
        self._store = TopicStore(logs.directory / TOPICS_FILE, logs.manifest)
        stored = self._store.read()
        own = {name: log_config(configs, config.log) for name, configs in self._internal.items()}
        logs.load(own | _log_configs(stored, config.log, self._store.path), log_config(ADOPTED, config.log))
        try:
            finish_interrupted_changes(logs, self._store, stored, self._internal, config.log)
        except OSError as error:
            raise DataDirectoryError(f"cannot create or delete topics in {logs.directory}: {error}") from error
        ids = logs.topic_ids()
        self._table = TopicTable(Topic(name, ids[name], configs=stored[name].configs) for name in ids)
        for name, log in logs.items():
            self._table.find(name.topic, NO_TOPIC_ID).partitions[name.partition] = log
        self.version = 0

    def _write_store(self, topics: Mapping[str, StoredTopic]) -> None:
        self._logs.write_state(partial(self._store.write, topics))

    @property
    def events(self) -> EventLog:
        """The broker's log of events, such as created and deleted topics. The event log belongs to the log manager."""
        return self._logs.events

    @property
    def directory(self) -> Path:
        return self._logs.directory

    def all(self) -> list[Topic]:
        """Return all topics, sorted by name."""
        return self._table.all()

    def get(self, name: str) -> Topic | None:
        """Return the topic with this name, or None."""
        return self._table.get(name)

    def __contains__(self, name: str) -> bool:
        return self._table.get(name) is not None

    def find(self, name: str | None, id: uuid.UUID) -> Topic:
        """Return a topic by `id`, or by `name` if `id` is NO_TOPIC_ID.

        Raises UNKNOWN_TOPIC_ID (unknown id) or UNKNOWN_TOPIC_OR_PARTITION (unknown name).
        """
        return self._table.find(name, id)

    def log(self, name: str | None, id: uuid.UUID, partition: int) -> Log:
        """Return a partition's log. Raises UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION."""
        return self.find(name, id).log(partition)

    def logs(self) -> Iterator[tuple[TopicPartition, Log]]:
        """Return every partition of every topic, with its log."""
        for topic in self.all():
            for number, log in topic.partitions.items():
                yield TopicPartition(topic.name, number), log

    def log_of(self, partition: TopicPartition) -> Log:
        """Return the log of a partition. Raises UNKNOWN_TOPIC_OR_PARTITION."""
        return self.log(partition.topic, NO_TOPIC_ID, partition.partition)

    def delete_records(self, starts: Mapping[TopicPartition, int]) -> None:
        """Set new log start offsets for several partitions, and sync them to disk.

        Raises KAFKA_STORAGE_ERROR if the offsets cannot be written to disk.
        """
        try:
            self._logs.delete_records(starts)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot write the log start offsets: {error}") from error

    def create(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> Topic:
        """Create a topic.

        Raises KafkaError: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_REQUEST (for the name
        `__cluster_metadata`, the log of a KRaft controller), INVALID_CONFIG, INVALID_PARTITIONS, POLICY_VIOLATION (too
        many partitions), KAFKA_STORAGE_ERROR.
        """
        topic = self.check(name, partitions, configs or {})
        (outcome,) = self.create_all([NewPartitions(topic, partitions)])
        if outcome is not None:
            raise outcome
        return topic

    def check(self, name: str, partitions: int, configs: Mapping[str, str]) -> Topic:
        """Check whether `create` can create this topic. Return the topic, but do not create it yet.

        Raises the same errors as `create`, except KAFKA_STORAGE_ERROR.
        """
        check_topic_name(name)
        self._table.check_is_free(name)
        topic = Topic(name, uuid.uuid4(), configs=self._checked_configs(configs)[0])
        check_count(name, partitions)
        return topic

    def create_all(self, new: Sequence[NewPartitions]) -> list[KafkaError | None]:
        """Create several topics together. Each topic in `new` must be a result of the method `check`.

        Return an error or None for each topic. The errors are TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION (two names
        differ only in `.` and `_`), POLICY_VIOLATION (too many partitions) and KAFKA_STORAGE_ERROR.
        """
        with self._lock:
            taken: set[str] = set()

            def check(name: str) -> None:
                self._table.check_is_free(name)
                if metric_name(name) in taken:
                    why = f'the names of {name!r} and another new topic differ only in the characters "." and "_"'
                    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, why)
                taken.add(metric_name(name))

            return self._make_partitions(new, [outcome_of(partial(check, each.topic.name)) for each in new])

    def add_partitions(self, grown: Sequence[NewPartitions]) -> list[KafkaError | None]:
        """Add partitions to several topics together.

        Return an error or None for each topic: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, POLICY_VIOLATION (too
        many partitions), KAFKA_STORAGE_ERROR.
        """
        with self._lock:
            return self._make_partitions(grown, [outcome_of(partial(self.check_growth, *each)) for each in grown])

    def check_growth(self, topic: Topic, count: int) -> None:
        """Raise KafkaError if the broker cannot increase the topic's number of partitions to `count`.

        Raises UNKNOWN_TOPIC_OR_PARTITION if the topic has been deleted. Raises INVALID_PARTITIONS if the topic already
        has `count` or more partitions. Raises POLICY_VIOLATION if `count` is too large. This method itself adds no
        partitions.
        """
        self._table.check_is_there(topic)
        if count <= (before := topic.next_partition):
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS, f"{topic.name!r} has {before} partitions, so {count} is not an increase"
            )
        check_count(topic.name, count)

    def _make_partitions(
        self, wanted: Sequence[NewPartitions], outcomes: Sequence[KafkaError | None]
    ) -> list[KafkaError | None]:
        """Create new partitions for several topics. If one partition cannot be created, create none for any topic.

        `outcomes` contains one entry for each topic. If the entry is an error, the caller has already refused the
        topic, and this method ignores the topic. If the entry is None, this method creates the partitions.

        Return a list like `outcomes`. If the partitions cannot be created, an error replaces each None in this list.
        """
        new = {each.topic.name: each for each, outcome in zip(wanted, outcomes, strict=True) if outcome is None}
        try:
            made = self._make_logs(new)
        except KafkaError as error:
            return [outcome or error for outcome in outcomes]
        for (topic, total), logs in zip(new.values(), made, strict=True):
            what = "added partitions to topic" if topic.partitions else "created topic"
            self.events.add(EventKind.TOPIC, f"{what} {topic.name}, partitions: {total}", LOGGER)
            # Other threads can read the dict `topic.partitions` without a lock. So do not change this dict, but replace
            # it with a new dict.
            topic.partitions = {**topic.partitions, **logs}
            self._table.add(topic)
        self.version += bool(new)
        return list(outcomes)

    def _make_logs(self, new: Mapping[str, NewPartitions]) -> list[dict[int, Log]]:
        """Create the logs of new partitions, and return them. Raises POLICY_VIOLATION, KAFKA_STORAGE_ERROR."""
        numbers = [range(topic.next_partition, count) for topic, count in new.values()]
        if sum(map(len, numbers)) > MAX_TOPIC_PARTITIONS:
            why = f"one request creates at most {MAX_TOPIC_PARTITIONS} partitions"
            raise KafkaError(ErrorCode.POLICY_VIOLATION, why)
        logs = [
            NewLog(TopicPartition(topic.name, number), log_config(topic.configs, self._default), topic.id)
            for (topic, _), wanted in zip(new.values(), numbers, strict=True)
            for number in wanted
        ]
        stored = {name: StoredTopic(count, topic.configs) for name, (topic, count) in new.items()}
        try:
            if new:
                self._write_store(self._table.stored() | stored)
            made = iter(self._logs.create_all(logs) if new else ())
        except OSError as error:
            self._logs.reserve.use(error)
            # Before the broker deletes a directory, it adds an id to the directory's name. After a crash, the next
            # start deletes all partitions with this id. Unlike the topic id, a random id protects the topic's older
            # partitions.
            names = dict.fromkeys((each.name for each in logs), uuid.uuid4())
            with contextlib.suppress(OSError):  # If this fails, the next start of the broker deletes the partitions.
                left = self._logs.delete(names).left
                trash.empty(left)
                self._remove_directories(left)
            why = f"cannot create partitions of {', '.join(map(repr, new))}: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why) from error
        return [dict(zip(wanted, made, strict=False)) for wanted in numbers]

    def check_configs(self, configs: Mapping[str, str]) -> None:
        """Raise INVALID_CONFIG if these settings are not valid for a topic."""
        self._checked_configs(configs)

    def alter_configs(self, changes: Sequence[tuple[Topic, Mapping[str, str]]]) -> list[KafkaError | None]:
        """Replace all settings of each topic, unless it gets an error. Its logs use the new settings at once.

        Return an error or None for each topic: INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
        """
        with self._lock:
            checked: dict[str, tuple[Topic, dict[str, str], LogConfig]] = {}

            def check(topic: Topic, configs: Mapping[str, str]) -> None:
                self._table.check_is_there(topic)
                checked[topic.name] = topic, *self._checked_configs(configs)

            outcomes = [outcome_of(partial(check, *change)) for change in changes]
            stored = self._table.stored()
            new = {name: replace(stored[name], configs=configs) for name, (_, configs, _) in checked.items()}
            try:
                if new:
                    self._write_store(stored | new)
            except OSError as error:
                why = f"cannot store the settings of {', '.join(map(repr, new))}: {error}"
                return [outcome or KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why) for outcome in outcomes]
            for topic, configs, settings in checked.values():
                topic.configs = configs
                for log in topic.partitions.values():
                    log.reconfigure(settings)
                LOGGER.info("altered topic %s, its own settings are now: %s", topic.name, configs)
            return outcomes

    def _checked_configs(self, configs: Mapping[str, str]) -> tuple[dict[str, str], LogConfig]:
        """Check the settings of a topic. Return these settings, and the complete settings of the topic's logs.

        The first result contains the settings in `configs` in a uniform spelling, for example `true` for `TRUE` and `7`
        for `07`. The second result also contains a default value for each setting that is not in `configs`.

        Raises INVALID_CONFIG if a setting is not valid.
        """
        try:
            settings = log_config(configs, self._default)
            check_consistency(settings)
            return {name: TOPIC_KEYS[name].normal(text) for name, text in configs.items()}, settings
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error

    def set_default(self, default: LogConfig) -> None:
        """Change the default settings. A default applies to each topic whose own settings do not override it."""
        with self._lock:
            if default == self._default:
                return
            self._default = default
            for topic in self.all():
                settings = log_config(topic.configs, default)
                for log in topic.partitions.values():
                    log.reconfigure(settings)

    def delete(self, topics: Sequence[Topic], forget: Forget = lambda ids: None) -> list[KafkaError | None]:
        """Delete several topics with all their records.

        The method works in three steps:

        1. It marks the topics as deleted on disk, and removes them from the broker's table of topics.
        2. It calls the function `forget`, which removes other data about the topics, for example committed offsets.
        3. It removes the topics' files, which can take a long time.

        Return a list that contains an error or None for each topic. The errors are UNKNOWN_TOPIC_OR_PARTITION and
        KAFKA_STORAGE_ERROR.
        """
        with self._lock:
            outcomes = [outcome_of(partial(self._table.check_is_there, topic)) for topic in topics]
            present = {topic.name: topic for topic, outcome in zip(topics, outcomes, strict=True) if outcome is None}
            logs = {
                TopicPartition(name, number): topic.id for name, topic in present.items() for number in topic.partitions
            }
            try:
                left, kept = self._logs.delete(logs)
            except OSError as error:
                left, kept = [], dict.fromkeys(present, error)
            gone = {name: topic.id for name, topic in present.items() if name not in kept}
            for name in gone:
                self._table.remove(present[name])
                self.events.add(EventKind.TOPIC, f"deleted topic {name}", LOGGER)
            self.version += bool(gone)
        forget(gone)
        self._remove_files(left)
        return [outcome or _not_deleted(topic, kept) for topic, outcome in zip(topics, outcomes, strict=True)]

    def _remove_files(self, directories: Sequence[Path]) -> None:
        """Remove the files of deleted topics. If a file cannot be removed, log a warning."""
        try:
            trash.empty(directories)  # This may take long, so the lock is not held.
            with self._lock:
                self._remove_directories(directories)
        except OSError as error:  # The topics are deleted anyway. Only some of their files remain.
            LOGGER.warning("cannot remove files of deleted topics; the next start removes them: %s", error)

    def _remove_directories(self, directories: Sequence[Path]) -> None:
        """Write `topics.json` without the deleted topics, and then remove the empty directories of these topics.

        storage/state/trash.py explains this order. Raises OSError.
        """
        self._write_store(self._table.stored())
        trash.remove(directories)


def _log_configs(stored: Mapping[str, StoredTopic], default: LogConfig, path: Path) -> dict[str, LogConfig]:
    """Return a dict: topic name -> the settings of the topic's logs.

    The mapping `stored` contains the topics from the file `path`. The settings in `default` apply to each topic
    that does not override them. Raises DataDirectoryError if a setting in the file is not valid.
    """
    try:
        return {name: log_config(topic.configs, default) for name, topic in stored.items()}
    except ConfigError as error:
        raise DataDirectoryError(f"{path}: {error}") from error


def _not_deleted(topic: Topic, kept: Mapping[str, OSError]) -> KafkaError | None:
    """Return the error for a topic that could not be deleted, or None if the topic was deleted."""
    error = kept.get(topic.name)
    if error is None:
        return None
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot delete topic {topic.name!r}: {error}")
