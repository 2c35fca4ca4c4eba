"""The buffer of a consumer: it contains fetched batches whose records the application has not received yet.

A Fetch response contains up to `max_bytes` bytes of encoded records. As Python objects, the same records take about
five times as much memory as their encoded bytes. The buffer therefore stores encoded batches. When the application asks
for records, the buffer decodes one batch at a time:
    leader -> FetchedBatches -> BatchDecoder -> records of one batch -> poll

If the buffer cannot decode a batch, it reports an error instead of skipping the batch silently. The application
first receives all records that arrived before this batch. The next `poll` then raises the error.

With `read_committed`, a Fetch response also lists aborted transactions. Each entry of the list contains a producer id
and the first offset of the transaction. The decoder skips the transactional batches of this producer, from this offset
to the marker that ends the transaction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hmb.client.consuming.positions import Position
from hmb.client.consuming.settings import Deserializer
from hmb.client.errors import DeserializationError
from hmb.protocol.errors import KafkaError
from hmb.records.aborted import AbortedTransactions
from hmb.records.consumer_record import ConsumerRecord
from hmb.records.fast.consumer_records import consumer_records
from hmb.records.reading import Batch


@dataclass(slots=True)
class FetchedBatches:
    """The batches of one partition in one Fetch response.

    `aborted` contains the aborted transactions in the response. It is None if the consumer uses `read_uncommitted`.
    """

    position: Position
    batches: deque[Batch]
    aborted: AbortedTransactions | None

    def leaves_out(self, batch: Batch) -> bool:
        """Return whether the consumer skips this batch.

        A consumer skips control batches. With `read_committed`, it also skips batches of aborted transactions.
        """
        return (self.aborted is not None and self.aborted.covers(batch)) or batch.is_control


@dataclass(frozen=True, slots=True)
class BatchDecoder:
    """Turns a batch into records in three steps: it checks the CRC, decodes the records, and runs the deserializers."""

    check_crcs: bool = True
    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None

    @property
    def deserializes(self) -> bool:
        return self.key_deserializer is not None or self.value_deserializer is not None

    def records(self, fetched: FetchedBatches, batch: Batch) -> tuple[list[ConsumerRecord], Exception | None]:
        """Decode a batch. Return its records, and the error that stopped the decoding, or None.

        The returned list does not contain these records:

        - records below the offset `fetched.position.consumed`: the consumer has already returned them.
        - records at or above the offset `fetched.position.end`: reading ends at this offset.
        - control records.
        - records of aborted transactions, if the consumer uses `read_committed`.
        """
        position = fetched.position
        try:
            if self.check_crcs:
                batch.check()
            if fetched.leaves_out(batch):
                return [], None
            records = consumer_records(batch, *position.partition)
        except KafkaError as error:
            return [], batch_error(position, batch, error)
        first, end = position.consumed, position.end
        if records and (records[0].offset < first or (end is not None and records[-1].offset >= end)):
            records = [record for record in records if record.offset >= first and (end is None or record.offset < end)]
        return self._deserialized(records) if self.deserializes else (records, None)

    def checked(self, fetched: FetchedBatches) -> tuple[list[Batch], int, KafkaError | None]:
        """Return the batches before the first damaged batch, the next offset to read, and an error or None.

        The list contains only batches that the application may receive: no control batches. With `read_committed`, it
        also contains no batches of aborted transactions. The error describes the damaged batch. If no batch is damaged,
        the error is None.

        The method changes neither the buffer nor the consumer's position. So if Ctrl-C interrupts the method, no
        record is lost: the application can call `poll_arrow` again.
        """
        batches: list[Batch] = []
        next_offset = fetched.position.consumed
        fetched = replace(fetched, aborted=fetched.aborted and fetched.aborted.copy())
        for batch in fetched.batches:
            try:
                if self.check_crcs:
                    batch.check()
                if not fetched.leaves_out(batch):
                    batches.append(batch)
            except KafkaError as error:
                return batches, next_offset, batch_error(fetched.position, batch, error)
            next_offset = batch.last_offset + 1
        return batches, next_offset, None

    def _deserialized(self, records: list[ConsumerRecord]) -> tuple[list[ConsumerRecord], Exception | None]:
        """Apply the deserializers to the keys and the values of records. A key or value of None stays None.

        If a deserializer raises an exception for a record, return the records before this record, and a
        DeserializationError.
        """
        results: list[ConsumerRecord] = []
        for record in records:
            field, key, value = "key", record.key, record.value
            try:
                if self.key_deserializer is not None and key is not None:
                    key = self.key_deserializer(key)
                field = "value"
                if self.value_deserializer is not None and value is not None:
                    value = self.value_deserializer(value)
            except Exception as error:  # noqa: BLE001 - code of the application may raise any exception
                return results, DeserializationError(record, field, error)
            results.append(record._replace(key=key, value=value))
        return results, None


def batch_error(position: Position, batch: Batch, error: KafkaError) -> KafkaError:
    """Add the partition and the last offset of the batch to the message of an error. Return the new error."""
    return KafkaError(
        error.code, f"{position.partition}, batch that ends at offset {batch.last_offset}: {error.message}"
    )


class RecordBuffer:
    """Stores the fetched records of all partitions until the application receives these records.

    The buffer returns records in the order in which they arrived. When the buffer returns a record, it also updates
    the consumer's position in the record's partition. For example, after the record at offset 7, the field
    `consumed` of the position is 8.
    """

    def __init__(self, decoder: BatchDecoder) -> None:
        self.decoder = decoder
        self._fetched: deque[FetchedBatches] = deque()
        # The next three fields belong to the batch that was decoded last: its records, the index of the next record to
        # return, and the consumer's position in the partition.
        self._records: list[ConsumerRecord] = []
        self._next = 0
        self._position: Position
        self._next_offset = 0  # the offset after the batch that was decoded last
        self.returned = 0  # the number of records that the application has received

    def add(self, fetched: FetchedBatches) -> None:
        self._fetched.append(fetched)

    def discard(self, position: Position) -> None:
        """Remove all records of a partition from the buffer."""
        self._fetched = deque(fetched for fetched in self._fetched if fetched.position is not position)
        if self._records and self._position is position:
            self._records, self._next = [], 0

    def take(self, limit: int) -> list[ConsumerRecord]:
        """Remove up to `limit` records from the buffer, and return them. Update the positions of their partitions."""
        taken: list[ConsumerRecord] = []
        before: dict[Position, int] = {}
        try:
            while len(taken) < limit and self.has_records():
                before.setdefault(self._position, self._position.consumed)
                part = self._records[self._next : self._next + limit - len(taken)]
                self._next += len(part)
                is_finished = self._next == len(self._records)
                self._position.consumed = self._next_offset if is_finished else self._records[self._next].offset
                taken += part
        except BaseException:  # After Ctrl-C, the application has not received `taken`. Fetch these records again.
            for position, consumed in before.items():
                position.consumed = consumed
                self.fetch_again(position)
            raise
        self.returned += len(taken)
        return taken

    def fetch_again(self, position: Position) -> None:
        """Remove all records of a partition from the buffer, and let the fetcher fetch them again."""
        position.fetch_offset, position.error = position.consumed, None
        self.discard(position)

    def take_decoded(self) -> list[ConsumerRecord]:
        """Return the remaining records of the batch that was decoded last."""
        return self.take(len(self._records) - self._next)

    def next_fetched(self) -> FetchedBatches | None:
        """Return the next batches without removing them from the buffer. Return None if the buffer has no batches."""
        return self._fetched[0] if self._fetched else None

    def remove_next_fetched(self, count: int, next_offset: int, error: KafkaError | None) -> None:
        """Remove the batches that `next_fetched` has returned, and update the position of their partition.

        The new position is `next_offset`. But reading ends at the position's field `end`, so if `end` is smaller, the
        new position is `end`. For example, if `next_offset` is 8 and `end` is 6, the new position is 6.

        The application receives `count` records of the batches. If `error` is not None, the consumer stops reading
        the partition, and a later `poll` raises `error`.
        """
        position = self._fetched.popleft().position
        position.consumed = next_offset if position.end is None else min(next_offset, position.end)
        position.error = error
        self.returned += count

    def one_by_one(self, limit: int) -> Iterator[ConsumerRecord]:
        """Yield up to `limit` records, one after the other. Before each record, update the position of its partition.

        For example, before the method yields the record at offset 7, it sets the position to 8.
        """
        for _ in range(limit):
            if self._next == len(self._records) and not self.has_records():
                return
            record = self._records[self._next]
            self._next += 1
            is_finished = self._next == len(self._records)
            self._position.consumed = self._next_offset if is_finished else record.offset + 1
            self.returned += 1
            yield record

    def has_batches(self) -> bool:
        """Return whether the buffer contains a record or a batch.

        Even if the result is True, the application may receive no record, because a batch can contain only control
        records.
        """
        return self._next < len(self._records) or bool(self._fetched)

    def has_records(self) -> bool:
        """Decode batches until one of them contains a record for the application.

        Return whether there is such a record.
        """
        while self._next == len(self._records):
            while self._fetched and not self._fetched[0].batches:
                self._fetched.popleft()
            if not self._fetched:
                return False
            self._decode(self._fetched[0])
        return True

    def _decode(self, fetched: FetchedBatches) -> None:
        batch, position = fetched.batches[0], fetched.position
        records, error = self.decoder.records(fetched, batch)
        fetched.batches.popleft()  # Remove the batch only after the decoding, so that Ctrl-C does not lose it.
        next_offset = batch.last_offset + 1
        if error is not None:
            position.error = error
            fetched.batches.clear()
            next_offset = error.record.offset if isinstance(error, DeserializationError) else position.consumed
        if position.end is not None and next_offset > position.end:
            next_offset = position.end
        if not records:
            position.consumed = next_offset
        self._records, self._next, self._position, self._next_offset = records, 0, position, next_offset
