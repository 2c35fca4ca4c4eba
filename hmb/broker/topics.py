"""The topics of a broker: names, ids, partitions, settings.

A topic is what its partitions' directories say (storage/log_manager.py); only its settings need a file of their own,
`topic-configs.json` in the data directory: `{"topic": {"segment.bytes": "1048576"}}`, with what differs from the
broker's defaults.  It is written before the first directory, so that no log is ever opened with other settings than its
topic's.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from hmb.broker.config import BrokerConfig, ConfigError, log_config
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.checkpoints import TopicPartition, encode_uuid
from hmb.storage.files import replace_file
from hmb.storage.log import Log
from hmb.storage.log_manager import DataDirectoryError, LogManager

LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
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
        self._lock = (
            threading.Lock()
        )  # guards the two tables and the settings file; the log manager's lock is taken under it
        self._configs_path = logs.directory / "topic-configs.json"
        configs = self._read_configs()
        try:
            log_configs = {name: log_config(values, config.log) for name, values in configs.items()}
        except ConfigError as error:
            raise DataDirectoryError(f"{self._configs_path}: {error}") from error
        logs.load(log_configs, config.log)
        self._by_name = {name: Topic(name, id, configs=configs.get(name, {})) for name, id in logs.topic_ids().items()}
        self._by_id = {topic.id: topic for topic in self._by_name.values()}
        for name, log in logs.items():
            self._by_name[name.topic].partitions[name.partition] = log

    def all(self) -> list[Topic]:
        """In the order of their names."""
        return [topic for _, topic in sorted(self._by_name.items())]

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def find(self, name: str | None, id: uuid.UUID) -> Topic:
        """A topic by its id, or by its name where there is no id.  Raises UNKNOWN_TOPIC_ID or _OR_PARTITION."""
        if id.int or not name:
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

        Raises KafkaError: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_CONFIG,
        KAFKA_STORAGE_ERROR.
        """
        configs = dict(configs or {})
        with self._lock:
            self._check_name(name)
            if not 1 <= partitions <= MAX_PARTITIONS:
                raise KafkaError(
                    ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions for {name!r}: must be 1 to {MAX_PARTITIONS}"
                )
            try:
                settings = log_config(configs, self._config.log)
            except ConfigError as error:
                raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
            topic = Topic(name, uuid.uuid4(), configs=configs)
            if validate_only:
                return topic
            try:
                if configs:
                    self._write_configs({**self._topic_configs(), name: configs})
                names = [TopicPartition(name, number) for number in range(partitions)]
                topic.partitions.update(enumerate(self._logs.create_all(names, settings, topic.id)))
            except OSError as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot make topic {name!r}: {error}") from error
            self._by_name[name] = self._by_id[topic.id] = topic
            return topic

    def delete(self, topic: Topic) -> None:
        """Delete a topic with all its records.  Raises KAFKA_STORAGE_ERROR."""
        with self._lock:
            self._by_name.pop(topic.name, None)
            self._by_id.pop(topic.id, None)
            try:
                for number in topic.partitions:
                    self._logs.delete(TopicPartition(topic.name, number))
                if topic.configs:
                    self._write_configs(self._topic_configs())
            except OSError as error:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR, f"cannot delete topic {topic.name!r}: {error}"
                ) from error

    def _check_name(self, name: str) -> None:
        if name in (".", "..") or not LEGAL_NAME.fullmatch(name):
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"{name[:300]!r} is no topic name: 1 to 249 letters, digits, '.', '_' or '-', and not '.' or '..'",
            )
        if name in self._by_name:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists")
        # Metric names turn '.' into '_', so Kafka lets only one of such a pair exist.
        metric_name = name.replace(".", "_")
        for other in self._by_name:
            if other.replace(".", "_") == metric_name:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {name!r} collides with {other!r}")

    def _topic_configs(self) -> dict[str, dict[str, str]]:
        return {topic.name: topic.configs for topic in self.all() if topic.configs}

    def _read_configs(self) -> dict[str, dict[str, str]]:
        if not self._configs_path.exists():
            return {}
        try:
            configs = json.loads(self._configs_path.read_text(encoding="utf-8"))
            return {topic: {name: str(value) for name, value in values.items()} for topic, values in configs.items()}
        except (OSError, ValueError, AttributeError) as error:
            raise DataDirectoryError(
                f"cannot read {self._configs_path}: {error}; with other settings logs might be deleted: put the file "
                "back from a copy, or write {} into it to have the broker's defaults for all topics"
            ) from error

    def _write_configs(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        replace_file(self._configs_path, json.dumps(configs, indent=2, sort_keys=True) + "\n")
