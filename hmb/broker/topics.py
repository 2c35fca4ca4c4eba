"""The topics of a broker: names, ids, partitions, settings.

A topic is a name, an id and its partitions' logs.  The logs are found by their directories (storage/log_manager.py),
the settings in `topics.json` (topic_store.py), which also makes creation and deletion happen whole or not at all.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hmb.broker.config import BrokerConfig, log_config
from hmb.broker.config_keys import ConfigError
from hmb.broker.topic_store import ADOPTED, StoredTopic, TopicStore
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topic_names import check_topic_name
from hmb.storage.checkpoints import TopicPartition, encode_uuid
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from hmb.storage.log_manager import KAFKA_METADATA_TOPIC, DataDirectoryError, LogManager

LOGGER = logging.getLogger(__name__)
NO_ID = uuid.UUID(int=0)
MAX_PARTITIONS = 10_000  # of one topic: each is a directory, and one request could ask for 2^31


@dataclass(slots=True)
class Topic:
    name: str
    id: uuid.UUID
    partitions: dict[int, Log] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)


class Topics:
    """The table of topics.  Look-ups take no lock; creation and deletion go one at a time."""

    def __init__(self, logs: LogManager, config: BrokerConfig) -> None:
        """Open all logs of the directory.  Raises DataDirectoryError."""
        self._logs = logs
        self._config = config
        # Guards the two tables and the store; the log manager's lock is taken under it.
        self._lock = threading.Lock()
        self._store = TopicStore(logs.directory / "topics.json")
        stored = self._store.read()
        logs.load(self._log_configs(stored), log_config(ADOPTED, config.log))
        try:
            self._finish_what_was_begun(stored)
        except OSError as error:
            raise DataDirectoryError(f"cannot make or delete topics in {logs.directory}: {error}") from error
        ids = logs.topic_ids()
        self._by_name = {name: Topic(name, ids[name], configs=stored[name].configs) for name in ids}
        self._by_id = {topic.id: topic for topic in self._by_name.values()}
        for name, log in logs.items():
            self._by_name[name.topic].partitions[name.partition] = log

    def _log_configs(self, stored: Mapping[str, StoredTopic]) -> dict[str, LogConfig]:
        try:
            return {name: log_config(topic.configs, self._config.log) for name, topic in stored.items()}
        except ConfigError as error:
            raise DataDirectoryError(f"{self._store.path}: {error}") from error

    def _finish_what_was_begun(self, stored: dict[str, StoredTopic]) -> None:
        """Delete and make what a crash has left half done; take in the topics of another broker."""
        before = dict(stored)
        ids = self._logs.topic_ids()
        for name, topic in before.items():
            present = {found for found, _ in self._logs.items() if found.topic == name}
            wanted = {TopicPartition(name, number) for number in range(topic.partitions)}
            if topic.deleting:
                for found in present:
                    self._logs.delete(found)
                del stored[name]
            elif wanted - present:
                LOGGER.warning("topic %s lacks %d of its partitions: made, empty", name, len(wanted - present))
                config = log_config(topic.configs, self._config.log)
                self._logs.create_all(sorted(wanted - present), config, ids.get(name) or uuid.uuid4())
        for name in {found.topic for found, _ in self._logs.items()} - stored.keys():
            LOGGER.warning("topic %s comes from another broker: its records are kept for ever, until it is told", name)
            stored[name] = StoredTopic(0, dict(ADOPTED))
        if stored != before:
            self._store.write(stored)

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
        topic = self.find(name, id)
        log = topic.partitions.get(partition)
        if log is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name!r} has no partition {partition}")
        return log

    def create(
        self, name: str, partitions: int, configs: Mapping[str, str] | None = None, *, validate_only: bool = False
    ) -> Topic:
        """Make a topic.

        Raises KafkaError: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_REQUEST (the controller's own log),
        INVALID_CONFIG, INVALID_PARTITIONS, POLICY_VIOLATION (too many), KAFKA_STORAGE_ERROR.
        """
        configs = dict(configs or {})
        with self._lock:
            settings = self.check(name, partitions, configs)
            topic = Topic(name, uuid.uuid4(), configs=configs)
            if validate_only:
                return topic
            names = [TopicPartition(name, number) for number in range(partitions)]
            try:
                self._store.write({**self._stored(), name: StoredTopic(partitions, configs)})
                topic.partitions.update(enumerate(self._logs.create_all(names, settings, topic.id)))
            except OSError as error:
                self._undo_creation(names)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot make topic {name!r}: {error}") from error
            self._by_name[name] = self._by_id[topic.id] = topic
            return topic

    def check(self, name: str, partitions: int, configs: Mapping[str, str]) -> LogConfig:
        """Whether this topic could be made now, and the settings of its logs.  Raises as `create` does."""
        self._check_name(name)
        try:
            settings = log_config(configs, self._config.log)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
        if partitions < 1:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions for {name!r}: must be 1 or more")
        if partitions > MAX_PARTITIONS:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"{partitions} partitions for {name!r}: {MAX_PARTITIONS} at most"
            )
        return settings

    def _undo_creation(self, names: list[TopicPartition]) -> None:
        with contextlib.suppress(OSError):  # what cannot be undone on a full disk, the next start completes
            for name in names:
                self._logs.delete(name)
            self._store.write(self._stored())

    def delete(self, topic: Topic) -> None:
        """Delete a topic with all its records.  Raises UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR."""
        with self._lock:
            if self._by_id.get(topic.id) is not topic:  # somebody was faster, and the name may belong to a new topic
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name!r} is deleted already")
            try:
                stored = self._stored()
                self._store.write({**stored, topic.name: replace(stored[topic.name], deleting=True)})
                del self._by_name[topic.name], self._by_id[topic.id]
                for number in topic.partitions:
                    self._logs.delete(TopicPartition(topic.name, number))
                self._store.write(self._stored())
            except OSError as error:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR, f"cannot delete topic {topic.name!r}: {error}"
                ) from error

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


def _count(partitions: Mapping[int, Log]) -> int:
    """How many partitions; 0 where some numbers are missing, as in a directory of one broker of several."""
    return len(partitions) if partitions.keys() == set(range(len(partitions))) else 0
