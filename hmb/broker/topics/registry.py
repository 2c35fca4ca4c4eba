"""The topics of a broker: names, ids, partitions, settings.

A topic is a name, an id and its partitions' logs.  The logs are found by their directories (storage/log_manager.py),
the settings in `topics.json` (topic_store.py), which also makes creation and deletion happen whole or not at all.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from hmb.broker.config.broker_config import TOPIC_KEYS, BrokerConfig, check_consistency, log_config
from hmb.broker.config.keys import ConfigError
from hmb.broker.topics.internal import own_topics
from hmb.broker.topics.store import ADOPTED, StoredTopic, TopicStore
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import INTERNAL_TOPICS, NO_TOPIC_ID, TopicPartition, check_topic_name
from hmb.storage import trash
from hmb.storage.checkpoints import encode_uuid
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from hmb.storage.log_manager import KAFKA_METADATA_TOPIC, DataDirectoryError, LogManager

LOGGER = logging.getLogger(__name__)
MAX_PARTITIONS = 10_000  # of one topic: each is a directory, and one request could ask for 2^31


@dataclass(slots=True)
class Topic:
    name: str
    id: uuid.UUID
    partitions: dict[int, Log] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)

    @property
    def is_internal(self) -> bool:
        """The broker's own, which clients only read."""
        return self.name in INTERNAL_TOPICS

    def log(self, partition: int) -> Log:
        """Raises UNKNOWN_TOPIC_OR_PARTITION."""
        log = self.partitions.get(partition)
        if log is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {self.name!r} has no partition {partition}")
        return log


class Topics:
    """The table of topics.  Look-ups take no lock; creation, changes and deletion go one at a time."""

    def __init__(self, logs: LogManager, config: BrokerConfig) -> None:
        """Open all logs of the directory.  Raises DataDirectoryError."""
        self._logs = logs
        self._default = config.log
        self._own = {name: topic.configs for name, topic in own_topics(config).items()}  # kept as by another broker
        # Guards the two tables and the store; the log manager's lock is taken under it.
        self._lock = threading.Lock()
        self._store = TopicStore(logs.directory / "topics.json", logs.manifest)
        stored = self._store.read()
        own = {name: log_config(configs, config.log) for name, configs in self._own.items()}
        logs.load(own | self._log_configs(stored), log_config(ADOPTED, config.log))
        try:
            self._finish_what_was_begun(stored)
        except OSError as error:
            raise DataDirectoryError(f"cannot make or delete topics in {logs.directory}: {error}") from error
        ids = logs.topic_ids()
        self._by_name = {name: Topic(name, ids[name], configs=stored[name].configs) for name in ids}
        self._by_id = {topic.id: topic for topic in self._by_name.values()}
        for name, log in logs.items():
            self._by_name[name.topic].partitions[name.partition] = log
        self.version = 0  # grows with every topic or partition that comes or goes

    def _log_configs(self, stored: Mapping[str, StoredTopic]) -> dict[str, LogConfig]:
        try:
            return {name: log_config(topic.configs, self._default) for name, topic in stored.items()}
        except ConfigError as error:
            raise DataDirectoryError(f"{self._store.path}: {error}") from error

    def _finish_what_was_begun(self, stored: dict[str, StoredTopic]) -> None:
        """Finish the deletions and creations that a crash has interrupted; adopt the topics of another broker."""
        before = dict(stored)
        left = self._finish_deletions(stored)
        ids = self._logs.topic_ids()
        for name, topic in list(stored.items()):
            present = {found for found, _ in self._logs.items() if found.topic == name}
            wanted = {TopicPartition(name, number) for number in range(topic.partitions)}
            if wanted - present:
                LOGGER.warning("topic %s lacks %d of its partitions: made, empty", name, len(wanted - present))
                config = log_config(topic.configs, self._default)
                self._logs.create_all(sorted(wanted - present), config, ids.get(name) or uuid.uuid4())
        for name in {found.topic for found, _ in self._logs.items()} - stored.keys():
            if name not in self._own:
                LOGGER.warning("topic %s comes from another broker: its records are kept for ever, until told", name)
            stored[name] = StoredTopic(0, dict(self._own.get(name, ADOPTED)))
        if stored != before:
            self._write_store(stored)
        trash.remove(left)

    def _finish_deletions(self, stored: dict[str, StoredTopic]) -> list[Path]:
        """Delete the rest of topics whose deletion was interrupted, and take them out of `stored`.

        Return the empty directories that are left. They are removed after `stored` was written. Raises OSError.
        """
        deleted = self._logs.deleted_logs()
        deleted_ids, names = {each.topic_id for each in deleted}, {each.name for each in deleted}
        ids = {name: id for name, id in self._logs.topic_ids().items() if id in deleted_ids}
        rest = {name: ids[name.topic] for name, _ in self._logs.items() if name.topic in ids}
        left = [each.path for each in deleted] + self._logs.delete(rest)
        trash.empty(left)
        present = {name.topic for name, _ in self._logs.items()}
        for name, topic in list(stored.items()):
            partitions = (TopicPartition(name, number) for number in range(topic.partitions))
            if name not in present and any(trash.shortened(each) in names for each in partitions):
                del stored[name]
        return left

    def _write_store(self, topics: Mapping[str, StoredTopic]) -> None:
        """Write the list of topics. Raises OSError."""
        self._logs.write_state(partial(self._store.write, topics))

    @property
    def directory(self) -> Path:
        return self._logs.directory

    def all(self) -> list[Topic]:
        """In the order of their names."""
        return [topic for _, topic in sorted(self._by_name.items())]

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def find(self, name: str | None, id: uuid.UUID) -> Topic:
        """A topic by its id, or by its name where there is no id.  Raises UNKNOWN_TOPIC_ID or _OR_PARTITION."""
        if id.int or name is None:
            topic = self._by_id.get(id)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {encode_uuid(id)}")
            return topic
        topic = self._by_name.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return topic

    def log(self, name: str | None, id: uuid.UUID, partition: int) -> Log:
        """A partition's log.  Raises as `find` does."""
        return self.find(name, id).log(partition)

    def logs(self) -> Iterator[tuple[TopicPartition, Log]]:
        """Return all partitions with their logs."""
        for topic in self.all():
            for number, log in topic.partitions.items():
                yield TopicPartition(topic.name, number), log

    def log_of(self, partition: TopicPartition) -> Log:
        """The same by name.  Raises UNKNOWN_TOPIC_OR_PARTITION."""
        return self.log(partition.topic, NO_TOPIC_ID, partition.partition)

    def delete_records(self, starts: Mapping[TopicPartition, int]) -> None:
        """Let logs start at these offsets; when this returns, that is on disk. Raises KAFKA_STORAGE_ERROR."""
        try:
            self._logs.delete_records(starts)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot write the log start offsets: {error}") from error

    def create(
        self, name: str, partitions: int, configs: Mapping[str, str] | None = None, *, validate_only: bool = False
    ) -> Topic:
        """Make a topic.

        Raises KafkaError: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_REQUEST (the controller's own log),
        INVALID_CONFIG, INVALID_PARTITIONS, POLICY_VIOLATION (too many), KAFKA_STORAGE_ERROR.
        """
        with self._lock:
            topic = self.check(name, partitions, configs or {})
            if validate_only:
                return topic
            self._make_partitions(topic, range(partitions))
            self._by_name[name] = self._by_id[topic.id] = topic
            self.version += 1
        LOGGER.info("created topic %s, partitions: %d", name, partitions)
        return topic

    def check(self, name: str, partitions: int, configs: Mapping[str, str]) -> Topic:
        """The topic as it would be if it were made now, without its logs.  Raises as `create` does."""
        self._check_name(name)
        topic = Topic(name, uuid.uuid4(), configs=self._checked_configs(configs)[0])
        _check_count(name, partitions)
        return topic

    def _make_partitions(self, topic: Topic, numbers: range) -> None:
        """Make the logs of a topic's new partitions, all or none.  Raises KAFKA_STORAGE_ERROR."""
        names = [TopicPartition(topic.name, number) for number in numbers]
        try:
            self._write_store({**self._stored(), topic.name: StoredTopic(numbers.stop, topic.configs)})
            made = self._logs.create_all(names, log_config(topic.configs, self._default), topic.id)
        except OSError as error:
            self._logs.reserve.use(error)
            with contextlib.suppress(OSError):  # what cannot be undone, the next start completes
                self._remove_files(self._logs.delete(dict.fromkeys(names, uuid.uuid4())))  # not the topic's id
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"cannot make partitions of {topic.name!r}: {error}"
            ) from error
        # A new table: others may be reading the old one.
        topic.partitions = {**topic.partitions, **dict(zip(numbers, made, strict=True))}
        self.version += 1

    def add_partitions(self, topic: Topic, count: int, *, validate_only: bool = False) -> None:
        """Give a topic so many partitions in all.

        Raises KafkaError: INVALID_PARTITIONS, POLICY_VIOLATION (too many), UNKNOWN_TOPIC_OR_PARTITION,
        KAFKA_STORAGE_ERROR.
        """
        with self._lock:
            self._check_is_there(topic)
            first = max(topic.partitions, default=-1) + 1
            if count <= first:
                raise KafkaError(
                    ErrorCode.INVALID_PARTITIONS, f"{topic.name!r} has {first} partitions, {count} would not be more"
                )
            _check_count(topic.name, count)
            if validate_only:
                return
            self._make_partitions(topic, range(first, count))
        LOGGER.info("topic %s has more partitions: %d", topic.name, count)

    def alter_configs(self, topic: Topic, configs: Mapping[str, str], *, validate_only: bool = False) -> None:
        """Put these settings in the place of those that the topic has; its logs heed them from now on.

        Raises KafkaError: INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
        """
        with self._lock:
            self._check_is_there(topic)
            configs, settings = self._checked_configs(configs)
            if validate_only:
                return
            stored = self._stored()
            try:
                self._write_store({**stored, topic.name: replace(stored[topic.name], configs=configs)})
            except OSError as error:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR, f"cannot keep the settings of topic {topic.name!r}: {error}"
                ) from error
            topic.configs = configs
            for log in topic.partitions.values():
                log.reconfigure(settings)
        LOGGER.info("altered topic %s, its own settings: %s", topic.name, configs)

    def _checked_configs(self, configs: Mapping[str, str]) -> tuple[dict[str, str], LogConfig]:
        """A topic's own settings as we write them, and all those of its logs.  Raises INVALID_CONFIG."""
        try:
            settings = log_config(configs, self._default)
            check_consistency(settings)
            return {name: TOPIC_KEYS[name].normal(text) for name, text in configs.items()}, settings
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error

    def set_default(self, default: LogConfig) -> None:
        """What holds where a topic does not say, from now on."""
        with self._lock:
            if default == self._default:
                return
            self._default = default
            for topic in self._by_name.values():
                settings = log_config(topic.configs, default)
                for log in topic.partitions.values():
                    log.reconfigure(settings)

    def delete(self, topic: Topic, forget: Callable[[str, uuid.UUID], None] = lambda name, id: None) -> None:
        """Delete a topic with all its records.

        `forget` is for what others keep of it: called when the topic is gone and its files, which may take long, are
        not yet.  Raises UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
        """
        names = {TopicPartition(topic.name, number): topic.id for number in topic.partitions}
        with self._lock:
            self._check_is_there(topic)
            try:
                left = self._logs.delete(names)
            except OSError as error:
                why = f"cannot delete topic {topic.name!r}: {error}"
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why) from error
            del self._by_name[topic.name], self._by_id[topic.id]
            self.version += 1
        LOGGER.info("deleted topic %s", topic.name)
        forget(topic.name, topic.id)
        try:
            trash.empty(left)
            with self._lock:
                self._remove_files(left)
        except OSError as error:  # the topic is deleted anyway
            LOGGER.warning("topic %s: its files stay until the next start removes them: %s", topic.name, error)

    def _remove_files(self, directories: Sequence[Path]) -> None:
        """Remove the directories of deleted logs. Before that, write the list of topics, which names them no more.

        The order is explained in storage/trash.py. Raises OSError.
        """
        trash.empty(directories)
        self._write_store(self._stored())
        trash.remove(directories)

    def _check_is_there(self, topic: Topic) -> None:
        if self._by_id.get(topic.id) is not topic:  # somebody was faster, and the name may belong to a new topic
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name!r} is deleted already")

    def _check_name(self, name: str) -> None:
        check_topic_name(name)
        if name == KAFKA_METADATA_TOPIC:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name!r} is the name of a KRaft controller's own log")
        if name in self._by_name:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists")
        # Metric names turn '.' into '_', so Kafka lets only one of such a pair exist.
        metric_name = name.replace(".", "_")
        for other in self._by_name:
            if other.replace(".", "_") == metric_name:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {name!r} collides with {other!r}")

    def _stored(self) -> dict[str, StoredTopic]:
        return {name: StoredTopic(_count(topic.partitions), topic.configs) for name, topic in self._by_name.items()}


def _check_count(name: str, partitions: int) -> None:
    if partitions < 1:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions for {name!r}: must be 1 or more")
    if partitions > MAX_PARTITIONS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{partitions} partitions for {name!r}: {MAX_PARTITIONS} at most")


def _count(partitions: Mapping[int, Log]) -> int:
    """How many partitions; 0 where some numbers are missing, as in a directory of one broker of several."""
    return len(partitions) if partitions.keys() == set(range(len(partitions))) else 0
