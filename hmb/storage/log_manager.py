"""All logs of a data directory: found at start, made, deleted, closed.

The directory is a Kafka data directory: `<topic>-<partition>/` for each log, and beside them the state files of
checkpoints.py.  A file `.lock` keeps a second broker out.  `.kafka_cleanshutdown` is there only after a proper stop and
is removed at start; where it is missing, each log is checked from its recovery point on.

A log is deleted by renaming its directory to `<topic>-<partition>.<uuid>-delete`, which is one step whatever happens;
the files are removed after that, at the latest at the next start.

Source: thesis ch. 9.5.1 (log manager); Kafka's `LogManager`.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from hmb.protocol.errors import KafkaError
from hmb.storage import checkpoints
from hmb.storage.checkpoints import TopicPartition
from hmb.storage.config import LogConfig
from hmb.storage.files import replace_file, sync_directory
from hmb.storage.log import Log

LOGGER = logging.getLogger(__name__)
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
DELETED = "-delete"
KAFKA_METADATA_TOPIC = "__cluster_metadata"  # a KRaft controller's own log: not a topic of this broker


class DataDirectoryError(Exception):
    """The data directory cannot be used; says why and what to do."""


class LogManager:
    """The logs of one data directory, by topic and partition."""

    def __init__(self, directory: Path, *, node_id: int = 0) -> None:
        """Take the directory, making it if needed.  Raises DataDirectoryError."""
        self.directory = directory
        # Guards the table of logs while one is made or deleted; look-ups take no lock.
        self._lock = threading.Lock()
        self._logs: dict[TopicPartition, Log] = {}
        self._loaded = False
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock_file = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataDirectoryError(
                f"cannot use the data directory {directory}: {error.strerror}; choose another or change its permissions"
            ) from error
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock_file)
            raise DataDirectoryError(
                f"the data directory {directory} is in use by another broker; stop it, or choose another directory"
            ) from None
        try:
            self.cluster_id = self._identity(node_id)
        except OSError as error:
            raise DataDirectoryError(f"cannot write into the data directory {directory}: {error.strerror}") from error

    def load(self, configs: dict[str, LogConfig], default: LogConfig) -> None:
        """Open all logs, each with its topic's configuration.  Raises DataDirectoryError."""
        marker = self.directory / CLEAN_SHUTDOWN
        clean = marker.exists()
        try:
            recovery_points = checkpoints.read_offsets(self.directory / RECOVERY_POINTS)
            start_offsets = checkpoints.read_offsets(self.directory / START_OFFSETS)
            for path in sorted(self.directory.iterdir()):
                if path.name.endswith(DELETED):
                    shutil.rmtree(path)
                elif (name := _topic_partition(path)) is not None:
                    config = configs.get(name.topic, default)
                    self._logs[name] = Log(
                        path,
                        config,
                        recovery_point=recovery_points.get(name, 0),
                        start_offset=start_offsets.get(name, 0),
                        clean=clean,
                    )
                    self._logs[name].leader_epoch = checkpoints.read_leader_epoch(path)
            marker.unlink(missing_ok=True)
            self._loaded = True
        except (OSError, KafkaError, checkpoints.DamagedStateFile) as error:
            raise DataDirectoryError(f"cannot read the data directory {self.directory}: {error}") from error
        LOGGER.info("%d logs in %s, %s", len(self._logs), self.directory, "clean" if clean else "checked")

    def items(self) -> list[tuple[TopicPartition, Log]]:
        return sorted(self._logs.copy().items(), key=lambda item: item[0])

    def topic_ids(self) -> dict[str, uuid.UUID]:
        """The id of each topic; a new one, written down, for logs that come from a broker without topic ids."""
        ids: dict[str, uuid.UUID] = {}
        for name, _ in self.items():
            found = checkpoints.read_topic_id(self._path(name))
            if found is None:
                found = ids.get(name.topic) or uuid.uuid4()
                checkpoints.write_topic_id(self._path(name), found)
            ids.setdefault(name.topic, found)
        return ids

    def create(self, name: TopicPartition, config: LogConfig, topic_id: uuid.UUID) -> Log:
        """Make an empty log.  Raises OSError."""
        with self._lock:
            path = self._path(name)
            path.mkdir(mode=0o700)
            checkpoints.write_topic_id(path, topic_id)
            checkpoints.write_leader_epoch(path, 0, 0)
            log = self._logs[name] = Log(path, config, clean=True)
            return log

    def delete(self, name: TopicPartition) -> None:
        """Forget a log and remove its files.  Raises OSError."""
        with self._lock:
            log = self._logs.pop(name, None)
            if log is None:
                return
            path = self._path(name)
            trash = path.with_name(f"{path.name}.{uuid.uuid4().hex}{DELETED}")
            path.rename(trash)
            sync_directory(self.directory)
        shutil.rmtree(trash)

    def expire(self) -> None:
        """Delete the segments that need not be kept."""
        self._for_each_log(Log.expire)

    def flush_if_due(self) -> None:
        """Sync what should be on disk by now, and write the checkpoints."""
        self._for_each_log(Log.flush_if_due)
        self.write_checkpoints()

    def _for_each_log(self, action: Callable[[Log], object]) -> None:
        for name, log in list(self._logs.items()):
            try:
                action(log)
            except (KafkaError, OSError) as error:  # one log's trouble is not the others'
                LOGGER.error("%s: %s", name, error)

    def write_checkpoints(self) -> None:
        """Write down from where each log must be checked, and where it starts.  Raises OSError."""
        logs = dict(self._logs)
        checkpoints.write_offsets(self.directory / RECOVERY_POINTS, {n: log.recovery_point for n, log in logs.items()})
        checkpoints.write_offsets(self.directory / START_OFFSETS, {n: log.log_start_offset for n, log in logs.items()})

    def close(self) -> None:
        """Sync and close all logs, and say so on disk: the next start then checks nothing."""
        if self._loaded:
            self._close_logs()
        os.close(self._lock_file)

    def _close_logs(self) -> None:
        failed = False
        for name, log in self._logs.items():
            try:
                log.close()
            except (KafkaError, OSError) as error:
                failed = True
                LOGGER.error("closing %s: %s", name, error)
        try:
            self.write_checkpoints()
            if not failed:
                replace_file(self.directory / CLEAN_SHUTDOWN, '{"version":0,"brokerEpoch":-1}')
        except OSError as error:
            LOGGER.error(
                "cannot write the checkpoints in %s: %s; the next start will check the logs", self.directory, error
            )

    def _path(self, name: TopicPartition) -> Path:
        return self.directory / str(name)

    def _identity(self, node_id: int) -> str:
        """The cluster id of meta.properties; a new file where there is none."""
        path = self.directory / "meta.properties"
        if path.exists():
            return checkpoints.read_properties(path).get("cluster.id", "")
        cluster_id, directory_id = (checkpoints.encode_uuid(uuid.uuid4()) for _ in range(2))
        replace_file(path, f"version=1\nnode.id={node_id}\ncluster.id={cluster_id}\ndirectory.id={directory_id}\n")
        return cluster_id


def _topic_partition(path: Path) -> TopicPartition | None:
    topic, separator, partition = path.name.rpartition("-")
    if not (separator and topic and partition.isdigit() and path.is_dir()) or topic == KAFKA_METADATA_TOPIC:
        return None
    return TopicPartition(topic, int(partition))
