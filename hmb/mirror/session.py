"""The mirror itself: it copies batches until it is stopped, or until the copy is complete.

The main loop of a mirror is in `_copy`. It fetches batches from the source, writes them to the target, and
stores the new positions in memory. About once a second, it commits the positions.

After a temporary error, for example a lost connection, the mirror opens new connections, and starts again at
the committed positions. A mirror also starts at these positions after a crash, so both cases use the same
code.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hmb.client.admin import Admin
from hmb.client.connection import ConnectionFailed
from hmb.mirror.errors import MirrorError, MirrorInterrupted, can_retry, explained
from hmb.mirror.groups import OffsetTranslator, TranslatedOffset, commit_translated, translated_offsets
from hmb.mirror.mirror_maker import MirrorMakerTopics
from hmb.mirror.names import TopicChoice
from hmb.mirror.resuming import MirroredPartition, resume
from hmb.mirror.source import Fetched, SourceReader, is_missing
from hmb.mirror.target import TargetWriter
from hmb.mirror.topics import chosen_topics, prepare_topics, refuse_own_source
from hmb.mirror.translation import CopiedRun
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition

COMMIT_INTERVAL, GROUPS_INTERVAL, TOPICS_INTERVAL = 1.0, 5.0, 10.0  # seconds
POLL_TIMEOUT, RETRY_PAUSE = 0.25, 0.5  # seconds

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """The settings of a mirror: which topics and groups it copies, and how it copies them.

    The mirror stores its positions as the committed offsets of `group`, a consumer group at the target. By default,
    the group's name contains the cluster id of the source.

    Until both clusters have answered a request, any error ends the mirror. After that, a temporary error ends the
    mirror only if the error lasts longer than `retry_for` seconds.
    """

    choice: TopicChoice
    groups: re.Pattern[str]
    group: str | None = None
    is_once: bool = False
    is_transactional: bool = False
    retry_for: float = 60.0


class Mirror:
    """Copies topics from one cluster to another.

    Only one thread may use a mirror, but any thread may call `stop`. The mirror calls the function `say` with each
    text that the user should read. It calls `observe` several times a second, so that the caller can show the
    progress.

    Invariants:
    - The dicts `partitions` and `_copies` contain the same objects. The keys of `partitions` are source partitions,
      and the keys of `_copies` are target partitions. After a source topic is deleted, its partitions remain only
      in `_copies`.
    - The mirror commits a position only after the target has written all earlier records that the mirror copies.
      After a crash, the mirror therefore skips no record.
    - During a session, the position of a partition never decreases.
    """

    def __init__(
        self,
        source: Callable[[], Admin],
        target: Callable[[], Admin],
        settings: MirrorSettings,
        say: Say = lambda line: None,
        observe: Callable[[], None] = lambda: None,
    ) -> None:
        self._open_source, self._open_target, self._settings = source, target, settings
        self._say, self._observe = say, observe
        self.partitions: dict[TopicPartition, MirroredPartition] = {}  # The keys are partitions of the source.
        self._copies: dict[TopicPartition, MirroredPartition] = {}  # The keys are partitions of the target.
        self.group_offsets: dict[tuple[str, TopicPartition], TranslatedOffset] = {}
        # source partition -> its end offset when the mirror began to copy it. If the setting `is_once` is true, the
        # mirror stops when it has copied each partition up to this offset.
        self._ends: dict[TopicPartition, int] = {}
        self._missing: set[str] = set()  # topics that were deleted at the source while the mirror was running
        self._translated: set[TopicPartition] = set()  # source partitions whose records have other offsets in the copy
        self._stopped = False
        # Whether both clusters have answered. Until then, a failed connection ends the mirror, because the address may
        # be wrong. After that, the mirror connects again.
        self._has_begun = False
        self._group = ""
        self._mirror_maker: MirrorMakerTopics | None = None
        self._translator: OffsetTranslator | None = None
        self._failure = ""  # the temporary error that now prevents copying, as text; "" while the mirror works
        self._failed_at = 0.0  # the time at which the error in `_failure` first occurred

    def stop(self) -> None:
        """Stop the mirror: `run` commits the positions, and then returns."""
        self._stopped = True

    def run(self) -> None:
        """Copy until `stop` is called. With `is_once`, copy only the records that exist when the mirror starts.

        Raises MirrorError if the mirror cannot continue.
        """
        while True:
            try:
                with self._open_source() as source, self._open_target() as target:
                    if self._run_session(source, target):
                        return
            except (ConnectionFailed, KafkaError, MirrorInterrupted) as error:
                if not can_retry(error) or not self._has_begun:
                    raise
                if str(error) != self._failure:
                    then = "" if isinstance(error, MirrorInterrupted) else "; the mirror tries again"
                    self._say(f"{error}{then}")
                    self._failure, self._failed_at = str(error), time.monotonic()
                elif time.monotonic() - self._failed_at > self._settings.retry_for:
                    raise
            if self._stopped:
                return
            time.sleep(RETRY_PAUSE)

    def _run_session(self, source: Admin, target: Admin) -> bool:
        """Copy until the mirror stops. Return False if the topics have changed, so that a new session is needed."""
        refuse_own_source(source, target)
        self._has_begun = True
        self._group = self._settings.group or f"hmb-mirror-{source.describe_cluster().cluster_id or 'source'}"
        self._translator = OffsetTranslator(source, target)
        aliases = self._settings.choice.aliases
        self._mirror_maker = None if aliases is None else MirrorMakerTopics(source, target, aliases)
        described = [it for it in chosen_topics(source, self._settings.choice) if it.name not in self._missing]
        topics = prepare_topics(source, target, described, self._settings.choice)
        if not topics and self._settings.is_once:
            raise MirrorError("source: no topic matches; `hmb topics list` shows the topics")
        writer = TargetWriter(target, self._group, transactional=self._settings.is_transactional)
        try:
            partitions = {
                TopicPartition(topic.name, number): TopicPartition(topic.target, number)
                for topic in topics
                for number in range(topic.partitions)
            }
            self._resume(source, target, partitions)
            return self._copy(source, target, writer)
        finally:
            writer.close()

    def _resume(self, source: Admin, target: Admin, partitions: Mapping[TopicPartition, TopicPartition]) -> None:
        before = self.partitions
        found = resume(source, target, self._group, partitions, transactional=self._settings.is_transactional)
        self.partitions = {it.source: it for it in found}
        self._copies = {it.target: it for it in found}
        for it in found:
            if it.source in before:
                it.records, it.bytes = before[it.source].records, before[it.source].bytes
            else:
                self._ends[it.source] = it.end
            if it.lost:
                self._say(f"{it.source}: the source has deleted {it.lost} offsets before their copy")
            if it.foreign:
                self._say(f"{it.target}: {it.foreign} offsets of the copy come from another program")
            self._report_translated(it, it.position)

    def _copy(self, source: Admin, target: Admin, writer: TargetWriter) -> bool:
        reader = SourceReader(source.cluster, {it.source: it.position for it in self.partitions.values()})
        try:
            if self.partitions:
                self._commit(writer)  # From now on, the mirror knows which records of the target are its own.
            committed_at = topics_at = groups_at = time.monotonic()
            while not self._is_complete():
                fetched = reader.poll(POLL_TIMEOUT) if self.partitions else self._pause()
                self._write(fetched, writer)
                self._failure = ""
                now = time.monotonic()
                if now - committed_at > COMMIT_INTERVAL:
                    self._commit(writer)
                    committed_at = now
                    if self._mirror_maker is not None:
                        self._mirror_maker.write_heartbeat()
                if now - groups_at > GROUPS_INTERVAL:
                    self._copy_groups(source, target)
                    groups_at = now
                if now - topics_at > TOPICS_INTERVAL and not self._settings.is_once:
                    if self._has_new_topics(source):
                        self._commit(writer)
                        return False
                    topics_at = now
                self._observe()
            self._commit(writer)
            self._copy_groups(source, target)
            self._observe()
            return True
        finally:
            reader.close()

    def _pause(self) -> dict[TopicPartition, Any]:
        time.sleep(POLL_TIMEOUT)
        return {}

    def _is_complete(self) -> bool:
        if self._stopped:
            return True
        return self._settings.is_once and all(it.position >= self._ends[it.source] for it in self.partitions.values())

    def _write(self, fetched: Mapping[TopicPartition, Fetched | KafkaError], writer: TargetWriter) -> None:
        good: dict[TopicPartition, Fetched] = {}
        for partition, answer in fetched.items():
            if isinstance(answer, KafkaError):
                self._handle(partition, answer)
            else:
                good[partition] = answer
        batches = {self.partitions[it].target: answer.batches for it, answer in good.items() if answer.batches}
        try:
            if batches:
                writer.write(batches, self._note)
        except KafkaError as error:
            raise error if can_retry(error) else explained("target", error) from error
        for partition, answer in good.items():
            it = self.partitions[partition]
            it.position, it.end = answer.next_offset, answer.end

    def _note(self, target: TopicPartition, run: CopiedRun, size: int) -> None:
        """Update the progress of a partition after the target has written some of its records.

        `run` is the range of the written records. `size` is their size in bytes.
        """
        it = self._copies[target]
        it.translation.add(*run)
        it.records, it.bytes = it.records + run.length, it.bytes + size
        self._report_translated(it, run.source)

    def _report_translated(self, it: MirroredPartition, offset: int) -> None:
        """Inform the user, but only once for each partition, if records get other offsets in the copy.

        The object `it` describes the partition. Records with a source offset of at least `offset` can have another
        offset in the copy.
        """
        if not it.keeps_offsets and it.source not in self._translated:
            self._translated.add(it.source)
            self._say(f"{it.source}: from offset {offset} on, the copy has other offsets; they are translated")

    def _handle(self, partition: TopicPartition, error: KafkaError) -> None:
        """Handle an error of one source partition. If the topic was deleted, stop copying this partition.

        Raises a KafkaError or a MirrorError for all other errors.
        """
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            position = self.partitions[partition].position
            where = "the mirror continues at the first offset that exists"
            raise MirrorInterrupted(f"{partition}: offset {position} was deleted at the source; {where}")
        if not is_missing(error):
            raise error if can_retry(error) else explained("source", error)
        if partition.topic not in self._missing:
            self._missing.add(partition.topic)
            self._say(f"source: topic {partition.topic!r} was deleted; its copy stays at the target")
        del self.partitions[partition]

    def _commit(self, writer: TargetWriter) -> None:
        if self.partitions:
            try:
                writer.commit({it.target: it.committed for it in self.partitions.values()})
            except KafkaError as error:
                raise error if can_retry(error) else explained("target", error) from error

    def _copy_groups(self, source: Admin, target: Admin) -> None:
        assert self._translator is not None
        found = translated_offsets(source, self.partitions, self._translator, self._settings.groups, self._group)
        commit_translated(target, found)
        if self._mirror_maker is not None:
            self._mirror_maker.write_checkpoints(found)
        self.group_offsets = {(it.group, it.partition): it for it in found}

    def _has_new_topics(self, source: Admin) -> bool:
        """Return whether the mirror must copy topics or partitions that this session does not know yet."""
        for topic in chosen_topics(source, self._settings.choice):
            if topic.name not in self._missing and any(
                TopicPartition(topic.name, it.partition) not in self.partitions for it in topic.partitions
            ):
                return True
        return False
