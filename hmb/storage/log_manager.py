"""The log manager opens all logs of a data directory when the broker starts, and creates, deletes and closes logs.

The data directory has Kafka's layout. The data directory contains a directory `<topic>-<partition>/` for each log, and
the state files of state/checkpoints.py. The broker locks the directory, so that no other broker can use it
(state/directory_lock.py).

When the broker stops properly, it creates the file `.kafka_cleanshutdown`. At the next start, it removes this file. If
the file is missing at the start, the ends of the logs may be damaged. The broker then checks these segments of each
log:
- With a manifest (a list of all segments): the active segment, and each other segment whose files have changed since
  the broker wrote them.
- Without a manifest: the active segment, and each other segment that ends after the log's recovery point.
- Without a manifest and without a recovery point: all segments.

For example, a broker is killed. Its log `events-0` has the segments 0, 8021 and 16042, and the recovery point 12,000:
all records below this offset are on disk. If the manifest shows that the segments 0 and 8021 are unchanged, the broker
checks only segment 16042. Without a manifest, it checks 8021 and 16042, because both end after the recovery point.

If a state file is damaged, the broker logs an error, and starts without the file's information:
- Without the recovery points and the manifest, the broker must check all segments after a crash.
- Without the log start offsets, each log starts at its first segment. Records deleted by clients may become
  readable again.
- Without a log's leader epochs, the broker reads the newest epoch from the log's batches.
- Without a partition's topic id, the broker takes the id from the manifest or from another partition of the
  topic. If neither contains the id, the topic gets a new id.

The broker cannot restore `meta.properties`, which contains the identity of the directory. If this file is damaged, the
broker does not start.

To delete a log, the broker renames the log's directory to `<topic>-<partition>.<uuid>-delete`. The rename is one step,
so a crash cannot delete half a log. The broker removes the files later, at the latest at its next start.

Source: the thesis, chapter 9.5.1, "Components"; Kafka's `LogManager`.
"""

from __future__ import annotations

import errno
import logging
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.storage.cleanup import deletion
from hmb.storage.config import LogConfig
from hmb.storage.events import EventKind, EventLog
from hmb.storage.failure_isolation import NO_STOP, isolated
from hmb.storage.files.disk_reserve import DiskReserve, is_disk_full
from hmb.storage.files.durability import replace_file, sync_all, sync_directory
from hmb.storage.log import Log
from hmb.storage.recovery.loading import newest_leader_epoch
from hmb.storage.state import checkpoints, trash
from hmb.storage.state.identity import DataDirectoryError, cluster_id, lock
from hmb.storage.state.leader_epochs import LeaderEpochs
from hmb.storage.state.manifest import CLEAN_CONTENT, CLEAN_SHUTDOWN, DamagedStateFile, Manifest, SegmentEntry
from hmb.storage.state.offset_checkpoints import RECOVERY_POINTS, START_OFFSETS, OffsetCheckpoints
from hmb.storage.state.partition_directory import partition_of
from hmb.storage.state.topic_ids import read_topic_ids
from hmb.units import now_ms
from hmb.uuids import encode_uuid

LOGGER = logging.getLogger(__name__)


class NewLog(NamedTuple):
    """The name, the configuration and the topic id of a log to create."""

    name: TopicPartition
    config: LogConfig
    topic_id: uuid.UUID


class LogManager:
    """The logs of one data directory, by topic and partition.

    Invariants:

    - Each log has a directory `<topic>-<partition>/`, and no two brokers use the data directory at the same time.
    - In the checkpoint on disk, the recovery point of a log is never too high: all records below it are synced.
    - All partitions of a topic have the same topic id, and `_topic_ids` contains it.
    - After `close`, the manager changes no file.
    """

    def __init__(
        self,
        directory: Path,
        *,
        node_id: int = 0,
        stop: threading.Event = NO_STOP,
        syncs: bool = True,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        """Create and lock the data directory. Raises DataDirectoryError.

        If another thread sets the event `stop`, `load` ends early.
        """
        self._clock = clock
        self.events = EventLog(clock)
        self._syncs = syncs  # If False, new logs and state files survive a kill, but not a power cut.
        self.directory = directory
        self._stop = stop
        # A thread that creates or deletes a log holds this lock. A thread that looks up a log needs no lock.
        self._lock = threading.Lock()
        self._checkpoint_lock = threading.Lock()  # held while checkpoints are written; taken after _lock
        self._logs: dict[TopicPartition, Log] = {}
        self._topic_ids: dict[str, uuid.UUID] = {}
        self._loaded = False
        self._is_closed = False  # whether another broker may use the directory; set under _lock and _checkpoint_lock
        self._directory_lock = lock(directory)
        self.reserve = DiskReserve(directory)
        try:
            self.manifest = Manifest(directory, self.reserve, syncs=syncs)
            self._checkpoints = OffsetCheckpoints(directory, self.manifest)
            self.cluster_id = cluster_id(directory, self.manifest, node_id)
        except OSError as error:
            self._directory_lock.release()
            raise DataDirectoryError(f"cannot read or write in the data directory {directory}: {error}") from error
        except DamagedStateFile as error:
            self._directory_lock.release()
            raise DataDirectoryError(
                f"{error}. Put the file back from a copy. If no copy exists, remove the file and {self.manifest.path}: "
                "the broker then creates a new cluster id"
            ) from error

    def load(self, configs: dict[str, LogConfig], default: LogConfig) -> None:
        """Open all logs. Raises DataDirectoryError, Stopped.

        `configs` maps the name of a topic to the settings of its logs. All other logs get the settings `default`.
        """
        marker = self.directory / CLEAN_SHUTDOWN
        clean = marker.exists()
        recovery_points = self._checkpoints.read(RECOVERY_POINTS)
        start_offsets = self._checkpoints.read(START_OFFSETS)
        try:
            for path in sorted(self.directory.iterdir()):
                if (name := partition_of(path)) is not None:
                    config = configs.get(name.topic, default)
                    points = recovery_points.get(name), start_offsets.get(name, 0)
                    self._logs[name] = self._open(path, config, *points, clean=clean)
            self._topic_ids = read_topic_ids(self.directory, self._logs, self.manifest)
            ids = {str(name): encode_uuid(self._topic_ids[name.topic]) for name in self._logs}
            entries = {str(name): log.log_segments.entries(log.log_end_offset) for name, log in self._logs.items()}
            self.manifest.open(ids, entries)
            if clean:
                marker.unlink()
                sync_directory(self.directory)  # Without this sync, `marker` could exist again after a power cut.
            self.reserve.fill()
            if self.reserve.is_used:
                self.reserve.report()
            self._loaded = True
        except OSError as error:
            raise DataDirectoryError(
                f"cannot open the logs in {self.directory}: {error}; nothing was deleted: repair the disk or change "
                "the permissions, and start again"
            ) from error
        how = "" if clean else ", and checked the ends of their logs"
        self.events.add(EventKind.RECOVERY, f"opened {len(self._logs)} partitions in {self.directory}{how}", LOGGER)

    def _open(
        self, path: Path, config: LogConfig, recovery_point: int | None, start_offset: int, *, clean: bool
    ) -> Log:
        # At its start, the broker opens old logs. Their recovery can take long, so the event `self._stop` can end it.
        # After the start, the broker opens only new logs, which need no recovery.
        stop = NO_STOP if self._loaded else self._stop
        log = Log(
            *(path, config),
            recovery_point=recovery_point, start_offset=start_offset, clean=clean, stop=stop, clock=self._clock,
            reserve=self.reserve, manifest=self.manifest, events=self.events,
        )  # fmt: skip
        try:
            self.manifest.check(path / checkpoints.LEADER_EPOCHS)
            log.epochs = checkpoints.read_leader_epochs(path)
        except DamagedStateFile as error:
            log.epochs = LeaderEpochs([(newest_leader_epoch(log.segments), log.log_start_offset)])
            LOGGER.error("%s; the broker writes a new file with the log's newest epoch, %d", error, log.leader_epoch)
            content = checkpoints.leader_epochs_content(log.epochs)
            self.manifest.replace_file(path / checkpoints.LEADER_EPOCHS, content)
        return log

    def items(self) -> list[tuple[TopicPartition, Log]]:
        return sorted(self._logs.copy().items(), key=lambda item: item[0])

    def highest_producer_id(self) -> int:
        """Return the greatest producer id that any log remembers, or -1 if no log remembers a producer."""
        return max((log.producers.highest_id for _, log in self.items()), default=-1)

    def topic_ids(self) -> Mapping[str, uuid.UUID]:
        """Return the topic id of each topic, by topic name."""
        return {name.topic: self._topic_ids[name.topic] for name, _ in self.items()}

    def create(self, name: TopicPartition, config: LogConfig, topic_id: uuid.UUID) -> Log:
        """Create an empty log. Raises OSError."""
        return self.create_all([NewLog(name, config, topic_id)])[0]

    def create_all(self, new: Sequence[NewLog]) -> list[Log]:
        """Create empty logs on disk. After the method has returned, a power cut cannot destroy them. Raises OSError.

        The method writes the checkpoint files only one time for all new logs together, so a client can create thousands
        of topics quickly.
        """
        with self._lock:
            self._raise_if_closed()
            # The checkpoint files can still contain the offsets of a deleted topic that had the same name as a new
            # topic. These offsets are wrong for the new logs, so first write the offset 0 for each new log.
            self.write_checkpoints({**self._logs, **dict.fromkeys(each.name for each in new)})
            paths = [self._path(each.name) for each in new]
            contents: dict[Path, str] = {}
            for path, each in zip(paths, new, strict=True):
                path.mkdir(mode=0o700)
                contents[path / checkpoints.TOPIC_ID] = checkpoints.topic_id_content(each.topic_id)
                contents[path / checkpoints.LEADER_EPOCHS] = checkpoints.leader_epochs_content(LeaderEpochs())
            ids = {str(each.name): encode_uuid(each.topic_id) for each in new}
            self.manifest.add_partitions(ids, contents)
            if self._syncs:
                sync_all(paths)
                sync_directory(self.directory)
            made = {each.name: self._open(self._path(each.name), each.config, 0, 0, clean=True) for each in new}
            self._logs.update(made)
            self._topic_ids |= {each.name.topic: each.topic_id for each in new}
            return list(made.values())

    def delete(self, names: Mapping[TopicPartition, uuid.UUID]) -> trash.Deletion:
        """Delete logs by renaming their directories. `names` maps the name of each log to its topic id.

        A topic has one directory for each partition. If the method cannot rename the first directory of a topic, the
        topic is not deleted. After the first rename, the topic counts as deleted. If a later rename fails or the broker
        stops, the broker renames the remaining directories at its next start (trash.py).

        Raises OSError if the data directory cannot be synced.
        """
        with self._lock:
            self._raise_if_closed()
            try:
                self.manifest.forget_partitions(map(str, names))
            except OSError as error:  # The disk may be full. The deletion continues, because it frees space.
                LOGGER.warning("%s: %s", self.manifest.path, error)
            result = trash.rename_all(self.directory, names, self._logs, self.reserve)
            for name in names:
                if name.topic not in result.kept and (log := self._logs.pop(name, None)) is not None:
                    log.refuse(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} is deleted"))
            if self._syncs:
                sync_directory(self.directory)
            return result

    def expire(self) -> None:
        """Delete expired segments, segments below the log start offset, and expired producers, in all logs."""
        for name, log in list(self._logs.items()):
            with isolated(LOGGER, name, "old segments are not deleted"):
                deletion.expire(log)
                log.producers.expire(self._clock())

    def flush_if_due(self) -> None:
        """Sync the logs that are due for a sync (`flush.ms`), and write the checkpoints. Raises OSError."""
        for name, log in list(self._logs.items()):
            with isolated(LOGGER, name, "not synced"):
                log.flush_if_due()
        self.write_checkpoints()

    def write_checkpoints(self, logs: Mapping[TopicPartition, Log | None] | None = None) -> None:
        """Write the recovery points and log start offsets of logs to the checkpoint files. Raises OSError.

        The files then contain only the offsets of the partitions in `logs`, or by default of all partitions. If `logs`
        maps a partition to None, both of its offsets are 0. After `close`, the method writes nothing.
        """
        with self._checkpoint_lock:
            if not self._is_closed:
                self._check_directory()
                self._write_checkpoints(self._logs.copy() if logs is None else logs, {})

    def _write_checkpoints(
        self, logs: Mapping[TopicPartition, Log | None], new_starts: Mapping[TopicPartition, int]
    ) -> None:
        """Write the recovery points and the log start offsets of `logs` to the two checkpoint files.

        If `new_starts` contains a greater offset than the present log start offset of a log, the method writes this
        greater offset. The caller holds the checkpoint lock.
        """
        points = {name: log.recovery_point if log else 0 for name, log in logs.items()}
        starts = {name: log.log_start_offset if log else 0 for name, log in logs.items()}
        starts |= {name: max(starts[name], new_starts[name]) for name in new_starts.keys() & starts.keys()}
        self._checkpoints.write(points, starts)

    def delete_records(self, starts: Mapping[TopicPartition, int]) -> None:
        """Move the log start offsets of logs to the offsets in `starts`, but never to a lower offset.

        The method first writes the new offsets to the checkpoint on disk. If the disk is full, the method deletes the
        segments below the new offsets to make room, and writes the checkpoint again. If the write fails for another
        reason, no log start offset changes.

        Raises OSError, KafkaError.
        """
        with self._checkpoint_lock:
            self._raise_if_closed()
            logs = self._logs.copy()
            try:
                self._write_checkpoints(logs, starts)
            except OSError as error:
                if not is_disk_full(error):
                    raise
                for name in starts.keys() & logs.keys():
                    deletion.expire(logs[name], before_offset=starts[name], at_once=True)
                self._write_checkpoints(logs, starts)
            for name in starts.keys() & logs.keys():
                deletion.delete_records(logs[name], starts[name])

    def watch_disk(self) -> None:
        """If the disk is full, delete expired segments, and check whether the disk has space again.

        The broker usually keeps the files of a deleted segment for `file.delete.delay.ms`, because a fetch may still
        read them. This method removes the files immediately.
        """
        if self.reserve.is_used:
            for name, log in list(self._logs.items()):
                with isolated(LOGGER, name, "old segments are not deleted"):
                    deletion.expire(log, at_once=True)
            self.reserve.fill()

    def write_state(self, write: Callable[[], None]) -> None:
        """Call `write`, which writes a state file. If the disk is full, delete the reserve file and try again.

        The reserve file only occupies disk space, so its deletion makes room for the broker's own writes. Raises
        OSError in these cases:

        - The second try fails, or the first try fails for another reason than a full disk.
        - The manager is closed, or a user has moved, removed or replaced the data directory.
        """
        self._raise_if_closed()
        self.reserve.write(write)

    def write_checkpoint(self, path: Path, offsets: dict[TopicPartition, int]) -> None:
        """Write `offsets` to a checkpoint file, unless the manager is closed. Raises OSError.

        The cleaner's thread may call this method after `close`. The method then changes no file.
        """
        with self._checkpoint_lock:
            if not self._is_closed:
                self._check_directory()
                self.manifest.replace_file(path, checkpoints.offsets_content(offsets))

    def close(self, *, crash: bool = False) -> None:
        """Sync and close all logs. If this succeeds, create the file that marks a proper stop.

        If the broker finds this file at its next start, it need not check unchanged logs. The method logs errors,
        and does not raise them. A housekeeping thread can still run after `close`, but it changes no file.

        If `crash` is True, the method simulates a crash: it does not sync or write files, and the logs refuse appends.
        """
        with self._lock:
            for log in self._logs.values() if crash else ():
                log.refuse(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker was killed"))
            if self._loaded and not crash:
                self._close_logs()
            with self._checkpoint_lock:
                self._is_closed = True
                self._directory_lock.release()

    def _raise_if_closed(self) -> None:
        """Raise OSError if the manager is closed, or if a user has moved, removed or replaced the data directory."""
        if self._is_closed:
            raise OSError(errno.ESHUTDOWN, "the broker is stopping and changes no more files", str(self.directory))
        self._check_directory()

    def _check_directory(self) -> None:
        """If a user has moved or replaced the directory, refuse appends to all logs and raise OSError."""
        try:
            self._directory_lock.check()
        except OSError as error:
            for log in list(self._logs.values()):
                log.refuse(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
            raise

    def _close_logs(self) -> None:
        try:
            self._check_directory()
        except OSError as error:
            LOGGER.error("%s; the broker stops and writes nothing more into the directory", error)
            return
        entries: dict[str, list[SegmentEntry]] = {}
        for name, log in self._logs.items():
            with isolated(LOGGER, name, "not closed; the broker checks it at its next start"):
                log.close()
                entries[str(name)] = log.log_segments.entries_at_stop(log.log_end_offset)
        try:
            self.write_checkpoints()
            if len(entries) == len(self._logs):
                self.manifest.record(entries)
                self.manifest.close()
                replace_file(self.directory / CLEAN_SHUTDOWN, CLEAN_CONTENT)
        except OSError as error:
            LOGGER.error(
                "cannot write the checkpoints in %s: %s; the broker will check the logs at its next start",
                self.directory, error)  # fmt: skip

    def _path(self, name: TopicPartition) -> Path:
        return self.directory / str(name)
