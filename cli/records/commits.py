"""Commit offsets for `hmb consume -G`: only the offsets of records that were printed.

After each poll, `hmb.Consumer` itself would commit the offsets of all records that the poll has returned. But `hmb
consume` prints these records only after the poll, and Ctrl-C or a closed pipe can end the command before all of them
are printed. `GroupCommits` therefore commits the offsets of a poll only after all records of the poll were printed.
`GroupCommits` commits every five seconds, before partitions are revoked, and at the end of the command.

For example, a poll returns the records at offsets 40 to 49. While `hmb consume` writes these records to a pipe,
the program that reads the pipe exits, so the write fails. `hmb consume` does not know which records the program
has read. `GroupCommits` therefore commits no offset of this poll. The next member of the group reads the
records again, from offset 40.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hmb.client import Consumer, TopicPartition

COMMIT_INTERVAL = 5.0  # seconds
GRACE = 5.0  # seconds to commit and to leave the group at the end


class GroupCommits:
    """Commits a group's offsets: in each partition, the offset after the last printed record."""

    def __init__(self) -> None:
        self._printed: dict[TopicPartition, int] = {}  # partition -> the offset after the last record that was printed
        self._committed: dict[TopicPartition, int] = {}
        self._unanswered = 0
        self._is_failing = self._is_finished = False
        self._at = time.monotonic()

    @contextmanager
    def printing(self, consumer: Consumer) -> Iterator[None]:
        """Commit offsets after the `with` block, in which the caller prints the records of one poll.

        If COMMIT_INTERVAL has not yet passed since the last commit, a later commit includes these offsets. If the block
        raises an error, the offsets of this poll are not committed, because the caller has perhaps not printed all
        records.
        """
        known = (it for it in consumer.assignment if consumer.lag(it) is not None)
        positions = {partition: consumer.position(partition) for partition in known}
        yield
        self._printed = positions
        if time.monotonic() - self._at >= COMMIT_INTERVAL:
            self._at = time.monotonic()
            self._commit_async(consumer, consumer.assignment)

    def before_revocation(self, consumer: Consumer, partitions: Iterable[TopicPartition]) -> None:
        """Commit the offsets of partitions that this member loses. Other members start reading at these offsets."""
        from hmb.protocol.errors import KafkaError

        offsets = {} if self._is_finished else self._uncommitted(partitions)
        try:
            if offsets:
                consumer.commit(offsets)
                self._is_failing = False
            self._committed |= offsets
        except (KafkaError, ConnectionError) as error:
            self._warn(error)

    def finish(self, consumer: Consumer) -> None:
        """Commit the offsets that are not committed yet, and leave the group. Wait at most GRACE seconds."""
        self._commit_async(consumer, consumer.assignment)
        self._is_finished = True  # `close` calls `before_revocation`, which must not commit again.
        consumer.close(GRACE)
        if self._unanswered:
            self._warn(f"no answer within {GRACE:g} s")

    def _commit_async(self, consumer: Consumer, partitions: Iterable[TopicPartition]) -> None:
        offsets = self._uncommitted(partitions)
        if offsets:
            self._unanswered += 1
            self._committed |= offsets
            consumer.commit_async(offsets, self._answered)

    def _answered(self, offsets: object, error: Exception | None) -> None:
        self._unanswered -= 1
        if error is None:
            self._is_failing = False
        else:
            self._committed.clear()
            self._warn(error)

    def _warn(self, why: object) -> None:
        """Print a warning about a failed commit. If several commits in a row fail, print only one warning."""
        if not self._is_failing:
            self._is_failing = True
            what = "the last printed records are not committed, and may be printed again"
            click.echo(f"hmb: {what}: {why}", err=True)

    def _uncommitted(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {
            partition: self._printed[partition]
            for partition in partitions
            if partition in self._printed and self._printed[partition] != self._committed.get(partition)
        }
