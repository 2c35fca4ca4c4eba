"""All logs of a data directory: found at start, made, deleted, closed.

The directory is a Kafka data directory: `<topic>-<partition>/` for each log, and beside them the state files of
checkpoints.py.  A file `.lock` keeps a second broker out.  `.kafka_cleanshutdown` is there only after a proper stop and
is removed at start; where it is missing, each log is checked from its recovery point on.  A log that the checkpoint
does not name is none that was made here, and nothing is known of what was synced.

What of the state files is damaged is made again, with a warning, where it can be: recovery points and log start offsets
(all is checked, records that were deleted may be there again), leader epochs (the log's batches tell), topic ids (the
other partitions tell, or the topic gets a new one).  The identity, `meta.properties`, cannot.

A log is deleted by renaming its directory to `<topic>-<partition>.<uuid>-delete`, which is one step whatever happens;
the files are removed after that, at the latest at the next start.

Source: thesis ch. 9.5.1 (log manager); Kafka's `LogManager`.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import shutil
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.storage import checkpoints
from hmb.storage.config import LogConfig
from hmb.storage.files import NAMES, replace_file, sync_all, sync_directory
from hmb.storage.leader_epochs import LeaderEpochs
from hmb.storage.log import Log
from hmb.storage.recovery import NO_STOP
from hmb.storage.segment import Segment

LOGGER = logging.getLogger(__name__)
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
DELETED = "-delete"
PARTITION_NAME = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,8})")
LONGEST_IN_TRASH = 200  # characters of its name that a deleted directory keeps: a file name has 255 at most
KAFKA_METADATA_TOPIC = "__cluster_metadata"  # a KRaft controller's own log: not a topic of this broker


class DataDirectoryError(Exception):
    """The data directory cannot be used; says why and what to do."""


class NewLog(NamedTuple):
    """An empty log that is to be made."""

    name: TopicPartition
    config: LogConfig
    topic_id: uuid.UUID


class LogManager:
    """The logs of one data directory, by topic and partition."""

    def __init__(self, directory: Path, *, node_id: int = 0, stop: threading.Event = NO_STOP) -> None:
        """Take the directory, making it if needed; `stop` ends a `load`.  Raises DataDirectoryError."""
        self.directory = directory
        self._stop = stop
        # Guards the table of logs while one is made or deleted; look-ups take no lock.
        self._lock = threading.Lock()
        self._checkpoint_lock = threading.Lock()  # one at a time writes the checkpoints; taken after _lock
        self._logs: dict[TopicPartition, Log] = {}
        self._loaded = False
        self._is_closed = False  # written under both locks: then the directory may be another broker's
        try:
            _make_directory(directory)
            self._lock_file = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            reason = f"{error.strerror}; choose another or change its permissions"
            if isinstance(error, FileExistsError):
                reason = "it is a file; choose another"
            raise DataDirectoryError(f"cannot use the data directory {directory}: {reason}") from error
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
            os.close(self._lock_file)
            raise DataDirectoryError(f"cannot write into the data directory {directory}: {error.strerror}") from error
        except checkpoints.DamagedStateFile as error:
            os.close(self._lock_file)
            raise DataDirectoryError(
                f"{error}; put the file back from a copy, or remove it to give the directory a new identity"
            ) from error

    def load(self, configs: dict[str, LogConfig], default: LogConfig) -> None:
        """Open all logs, each with its topic's configuration.  Raises DataDirectoryError, and Stopped (recovery.py)."""
        marker = self.directory / CLEAN_SHUTDOWN
        clean = marker.exists()
        recovery_points = self._read_checkpoint(RECOVERY_POINTS, "all logs are checked after an unclean stop")
        start_offsets = self._read_checkpoint(START_OFFSETS, "records that were deleted may be there again")
        try:
            for path in sorted(self.directory.iterdir()):
                if path.name.endswith(DELETED) and path.is_dir():
                    shutil.rmtree(path)
                elif (name := _topic_partition(path)) is not None:
                    config = configs.get(name.topic, default)
                    points = recovery_points.get(name), start_offsets.get(name, 0)
                    self._logs[name] = self._open(path, config, *points, clean=clean)
            if clean:
                marker.unlink()
                sync_directory(self.directory)  # or it might be there again after a power cut
            self._loaded = True
        except OSError as error:
            raise DataDirectoryError(
                f"cannot open the logs in {self.directory}: {error}; nothing was thrown away: mend the disk or change "
                "the permissions, and start again"
            ) from error
        LOGGER.info("%d logs in %s, %s", len(self._logs), self.directory, "clean" if clean else "checked")

    def _read_checkpoint(self, name: str, consequence: str) -> dict[TopicPartition, int]:
        try:
            return checkpoints.read_offsets(self.directory / name)
        except checkpoints.DamagedStateFile as error:
            LOGGER.warning("%s; going on without it: %s", error, consequence)
            return {}
        except OSError as error:
            raise DataDirectoryError(f"cannot read {self.directory / name}: {error.strerror}") from error

    def _open(
        self, path: Path, config: LogConfig, recovery_point: int | None, start_offset: int, *, clean: bool
    ) -> Log:
        stop = self._stop
        log = Log(path, config, recovery_point=recovery_point, start_offset=start_offset, clean=clean, stop=stop)
        try:
            log.epochs = checkpoints.read_leader_epochs(path)
        except checkpoints.DamagedStateFile as error:
            log.epochs = LeaderEpochs([(newest_leader_epoch(log.segments), log.log_start_offset)])
            LOGGER.warning("%s; the log's batches say %d, which is written down again", error, log.leader_epoch)
            checkpoints.write_leader_epochs(path, log.epochs)
        return log

    def items(self) -> list[tuple[TopicPartition, Log]]:
        return sorted(self._logs.copy().items(), key=lambda item: item[0])

    def highest_producer_id(self) -> int:
        """Of the idempotent producers that the logs remember; -1 where there are none."""
        return max((log.highest_producer_id for _, log in self.items()), default=-1)

    def topic_ids(self) -> dict[str, uuid.UUID]:
        """The id of each topic; a new one, written down, for logs that come from a broker without topic ids.

        Raises DataDirectoryError.
        """
        ids: dict[str, uuid.UUID] = {}
        without = []
        try:
            for name, _ in self.items():
                found = self._read_topic_id(name)
                if found is None:
                    without.append(name)
                elif ids.setdefault(name.topic, found) != found:
                    LOGGER.warning("%s has another topic id than other partitions: ignored", self._path(name))
            for name in without:
                checkpoints.write_topic_id(self._path(name), ids.setdefault(name.topic, uuid.uuid4()))
        except OSError as error:
            raise DataDirectoryError(f"cannot read or write topic ids in {self.directory}: {error}") from error
        return ids

    def _read_topic_id(self, name: TopicPartition) -> uuid.UUID | None:
        try:
            return checkpoints.read_topic_id(self._path(name))
        except checkpoints.DamagedStateFile as error:
            LOGGER.warning("%s; it gets the topic's id from another partition, or a new one", error)
            return None

    def create(self, name: TopicPartition, config: LogConfig, topic_id: uuid.UUID) -> Log:
        """Make an empty log.  Raises OSError."""
        return self.create_all([NewLog(name, config, topic_id)])[0]

    def create_all(self, new: Sequence[NewLog]) -> list[Log]:
        """Make empty logs.  They survive a power cut from now on.  Raises OSError.

        The logs of thousands of topics cost one write of the checkpoints and few commits of the file system.
        """
        with self._lock:
            self._raise_if_closed()
            # What the checkpoints say of an older topic with that name must not hold for this one.
            self.write_checkpoints({**self._logs, **dict.fromkeys(each.name for each in new)})
            for each in new:
                path = self._path(each.name)
                path.mkdir(mode=0o700)
                checkpoints.write_topic_id(path, each.topic_id, sync=False)
                checkpoints.write_leader_epochs(path, LeaderEpochs(), sync=False)
            sync_all([self._path(each.name) for each in new])
            sync_directory(self.directory)
            made = {each.name: Log(self._path(each.name), each.config, clean=True) for each in new}
            self._logs.update(made)
            return list(made.values())

    def delete(self, name: TopicPartition) -> None:
        """Forget a log and remove its directory, whatever is in it.  Raises OSError."""
        self.empty_trash(self.put_into_trash([name]))

    def put_into_trash(self, names: Iterable[TopicPartition]) -> list[Path]:
        """Forget logs: no start finds them again.  Returns what is left to remove.  Raises OSError."""
        with self._lock:
            self._raise_if_closed()
            trash = [path for name in names if (path := self._put_into_trash(name)) is not None]
            sync_directory(self.directory)
            return trash

    def empty_trash(self, directories: Iterable[Path]) -> None:
        """Remove the files, which takes its time and keeps nobody waiting: no lock is needed.  Raises OSError."""
        for directory in directories:
            shutil.rmtree(directory)

    def _put_into_trash(self, name: TopicPartition) -> Path | None:
        """Forget a log and rename its directory; its new name."""
        log, path = self._logs.get(name), self._path(name)
        if log is not None:
            log.refuse(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} is deleted"))
        if not path.exists():
            self._logs.pop(name, None)
            return None
        trash = path.with_name(f"{path.name[:LONGEST_IN_TRASH]}.{uuid.uuid4().hex}{DELETED}")
        with NAMES:
            path.rename(trash)
            if log is not None:
                log.moved(trash)
        self._logs.pop(name, None)
        return trash

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

    def write_checkpoints(self, logs: Mapping[TopicPartition, Log | None] | None = None) -> None:
        """Write down from where each log must be checked, and where it starts; None: at 0.  Raises OSError."""
        with self._checkpoint_lock:
            if self._is_closed:
                return
            logs = self._logs.copy() if logs is None else logs
            points = {name: log.recovery_point if log else 0 for name, log in logs.items()}
            starts = {name: log.log_start_offset if log else 0 for name, log in logs.items()}
            checkpoints.write_offsets(self.directory / RECOVERY_POINTS, points)
            checkpoints.write_offsets(self.directory / START_OFFSETS, starts)

    def write_checkpoint(self, path: Path, offsets: dict[TopicPartition, int]) -> None:
        """Write down what a housekeeper keeps in the directory, as long as that is ours.  Raises OSError."""
        with self._checkpoint_lock:
            if not self._is_closed:
                checkpoints.write_offsets(path, offsets)

    def close(self) -> None:
        """Sync and close all logs, and say so on disk: the next start then checks nothing.

        Housekeeping may still be at work; it changes nothing in the directory from now on.
        """
        with self._lock:
            if self._loaded:
                self._close_logs()
            with self._checkpoint_lock:
                self._is_closed = True
                os.close(self._lock_file)

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise OSError(errno.ESHUTDOWN, "the broker stops", str(self.directory))

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
            return checkpoints.read_cluster_id(path)
        cluster_id, directory_id = (checkpoints.encode_uuid(uuid.uuid4()) for _ in range(2))
        replace_file(path, f"version=1\nnode.id={node_id}\ncluster.id={cluster_id}\ndirectory.id={directory_id}\n")
        return cluster_id


def _make_directory(path: Path) -> None:
    """With its parents; a power cut does not take them away again."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in missing:
        sync_directory(each.parent)


def newest_leader_epoch(segments: Sequence[Segment]) -> int:
    """The greatest leader epoch that the end of a log shows."""
    for segment in reversed(segments):
        if segment.size:
            last = segment.offset_index.last.position
            return max(0, *(batch.partition_leader_epoch for _, batch in segment.batches(last, segment.size)), 0)
    return 0


def _topic_partition(path: Path) -> TopicPartition | None:
    """What a directory is the log of; None for everything else that may be in a data directory."""
    match = PARTITION_NAME.fullmatch(path.name)
    if match is None or match[1] == KAFKA_METADATA_TOPIC:
        return None
    if not path.is_dir():
        LOGGER.warning("%s is no directory, though it has the name of a partition: ignored", path)
        return None
    return TopicPartition(match[1], int(match[2]))
