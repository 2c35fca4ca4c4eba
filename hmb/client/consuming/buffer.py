"""What has been fetched and not been handed out: the answers' bytes, and the records of the batch in work.

A fetch brings up to `max_bytes`, and its records as Python objects take five times as much; so an answer is decoded
batch by batch, as the records are wanted. Nothing in hand is ever skipped: where a batch cannot be read, all that came
before it is handed out first, of this partition and of the others, and the error after that.

With read_committed an answer names the aborted transactions that it has records of: producer, and first offset. From
that offset on the producer's transactional batches are left out, up to the marker that ended the transaction.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from hmb.client.consuming.positions import Position
from hmb.client.consuming.settings import Deserializer
from hmb.client.errors import DeserializationError
from hmb.protocol.errors import KafkaError
from hmb.records.consumer_record import ConsumerRecord, consumer_records
from hmb.records.control import ControlType, control_type
from hmb.records.reading import Batch


class AbortedTransactions:
    """The transactions of one answer that were aborted; `covers` is to be asked about its batches in their order."""

    def __init__(self, transactions: Iterable[tuple[int, int]]) -> None:
        self._coming = deque(sorted((first_offset, producer_id) for producer_id, first_offset in transactions))
        self._open: set[int] = set()

    def copy(self) -> "AbortedTransactions":
        """To look ahead with."""
        other = AbortedTransactions(())
        other._coming, other._open = self._coming.copy(), self._open.copy()
        return other

    def covers(self, batch: Batch) -> bool:
        """Whether the batch belongs to one of them, as far as it is known to go."""
        while self._coming and self._coming[0][0] <= batch.last_offset:
            self._open.add(self._coming.popleft()[1])
        if not batch.is_transactional or batch.producer_id not in self._open:
            return False
        if batch.is_control and any(control_type(record) is ControlType.ABORT for record in batch.records()):
            self._open.discard(batch.producer_id)
        return True


@dataclass(slots=True)
class Fetched:
    """What one answer held of one partition; `aborted` is None for a reader of uncommitted records."""

    position: Position
    batches: deque[Batch]
    aborted: AbortedTransactions | None

    def leaves_out(self, batch: Batch) -> bool:
        """Whether none of the batch's records is for the user."""
        return (self.aborted is not None and self.aborted.covers(batch)) or batch.is_control


@dataclass(frozen=True, slots=True)
class Decoding:
    """What is done with each batch."""

    check_crcs: bool = True
    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None

    @property
    def deserializes(self) -> bool:
        return self.key_deserializer is not None or self.value_deserializer is not None

    def records(self, fetched: Fetched, batch: Batch) -> tuple[list[ConsumerRecord], Exception | None]:
        """The batch's records from the position on, before its end; and what ended them early."""
        position = fetched.position
        try:
            if self.check_crcs:
                batch.check()
            if fetched.leaves_out(batch):
                return [], None
            records = consumer_records(batch, *position.partition)
        except KafkaError as error:
            return [], damage(position, batch, error)
        first, end = position.consumed, position.end
        if records and (records[0].offset < first or (end is not None and records[-1].offset >= end)):
            records = [record for record in records if record.offset >= first and (end is None or record.offset < end)]
        return self._deserialized(records) if self.deserializes else (records, None)

    def checked(self, fetched: Fetched) -> tuple[list[Batch], int, KafkaError | None]:
        """The batches with records for the user, the offset behind them, and what is wrong with the next.

        Changes nothing, so that it can be done again if Ctrl-C comes in between.
        """
        batches: list[Batch] = []
        after = fetched.position.consumed
        fetched = replace(fetched, aborted=fetched.aborted and fetched.aborted.copy())
        for batch in fetched.batches:
            try:
                if self.check_crcs:
                    batch.check()
                if not fetched.leaves_out(batch):
                    batches.append(batch)
            except KafkaError as error:
                return batches, after, damage(fetched.position, batch, error)
            after = batch.last_offset + 1
        return batches, after, None

    def _deserialized(self, records: list[ConsumerRecord]) -> tuple[list[ConsumerRecord], Exception | None]:
        """Null stays None: it is the absence of something to deserialize."""
        results: list[ConsumerRecord] = []
        for record in records:
            what, key, value = "key", record.key, record.value
            try:
                if self.key_deserializer is not None and key is not None:
                    key = self.key_deserializer(key)
                what = "value"
                if self.value_deserializer is not None and value is not None:
                    value = self.value_deserializer(value)
            except Exception as error:  # noqa: BLE001 - the program's own code may raise what it likes
                return results, DeserializationError(record, what, error)
            results.append(record._replace(key=key, value=value))
        return results, None


def damage(position: Position, batch: Batch, error: KafkaError) -> KafkaError:
    """The error with the place where it is."""
    return KafkaError(
        error.code, f"{position.partition}, batch that ends at offset {batch.last_offset}: {error.message}"
    )


class InHand:
    """Hands out records in the order in which they came, and moves the positions on."""

    def __init__(self, decoding: Decoding) -> None:
        self.decoding = decoding
        self._fetched: deque[Fetched] = deque()
        self._records: list[ConsumerRecord] = []  # of the batch in work
        self._next = 0  # among these
        self._position: Position  # of their partition,
        self._after = 0  # and where it is when they have been handed out
        self.handed_out = 0  # records, ever

    def add(self, fetched: Fetched) -> None:
        self._fetched.append(fetched)

    def drop(self, position: Position) -> None:
        """Forget what is in hand of a partition."""
        self._fetched = deque(fetched for fetched in self._fetched if fetched.position is not position)
        if self._records and self._position is position:
            self._records, self._next = [], 0

    def take(self, limit: int) -> list[ConsumerRecord]:
        """Up to `limit` records; none if nothing is in hand."""
        taken: list[ConsumerRecord] = []
        before: dict[Position, int] = {}
        try:
            while len(taken) < limit and self.has_records():
                before.setdefault(self._position, self._position.consumed)
                part = self._records[self._next : self._next + limit - len(taken)]
                self._next += len(part)
                self._position.consumed = (
                    self._after if self._next == len(self._records) else self._records[self._next].offset
                )
                taken += part
        except BaseException:  # Ctrl-C while a batch was decoded: what was taken reaches nobody, so it is not consumed
            for position, consumed in before.items():
                position.consumed = consumed
                self.fetch_again(position)
            raise
        self.handed_out += len(taken)
        return taken

    def fetch_again(self, position: Position) -> None:
        """Forget what is in hand of a partition, and all that was fetched of it but not consumed."""
        position.fetched, position.error = position.consumed, None
        self.drop(position)

    def take_decoded(self) -> list[ConsumerRecord]:
        """The rest of the batch in work, of which some records have been handed out."""
        return self.take(len(self._records) - self._next)

    def next_fetched(self) -> Fetched | None:
        """What is in hand of the next partition, undecoded; stays in hand until `handed_out_next`."""
        return self._fetched[0] if self._fetched else None

    def handed_out_next(self, count: int, after: int, error: KafkaError | None) -> None:
        """It became so many records, the position is behind them, and nothing more can be read if there is an error."""
        position = self._fetched.popleft().position
        position.consumed = after if position.end is None else min(after, position.end)
        position.error = error
        self.handed_out += count

    def one_by_one(self, limit: int) -> Iterator[ConsumerRecord]:
        """The same, with the position moved on for each record as it is handed out."""
        for _ in range(limit):
            if self._next == len(self._records) and not self.has_records():
                return
            record = self._records[self._next]
            self._next += 1
            self._position.consumed = self._after if self._next == len(self._records) else record.offset + 1
            self.handed_out += 1
            yield record

    def has_batches(self) -> bool:
        """Whether something is in hand that may hold records."""
        return self._next < len(self._records) or bool(self._fetched)

    def has_records(self) -> bool:
        """Whether a record can be handed out; decodes batches until there is one."""
        while self._next == len(self._records):
            while self._fetched and not self._fetched[0].batches:
                self._fetched.popleft()
            if not self._fetched:
                return False
            self._decode(self._fetched[0])
        return True

    def _decode(self, fetched: Fetched) -> None:
        batch, position = fetched.batches[0], fetched.position
        records, error = self.decoding.records(fetched, batch)
        fetched.batches.popleft()  # not before: Ctrl-C may have come
        after = batch.last_offset + 1
        if error is not None:
            position.error = error
            fetched.batches.clear()
            after = error.record.offset if isinstance(error, DeserializationError) else position.consumed
        if position.end is not None and after > position.end:
            after = position.end
        if not records:
            position.consumed = after
        self._records, self._next, self._position, self._after = records, 0, position, after
