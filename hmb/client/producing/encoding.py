"""Encodes batches, and builds Produce requests in the version that the leader supports.

The producer encodes records in the format of record batches (magic 2), which brokers support since Kafka 0.11. For an
older broker, this module converts the records to the older format, a message set.

When the module builds a message set, it usually converts the records one by one. There is a faster way if a batch is
not compressed and all its records come from `send_many`. Records of `send_many` have values, but no keys and no
headers. The module then takes neighboring records whose values have the same length, and converts them together.

Source: Kafka's `ProducerBatch` and `MemoryRecordsBuilder`, and `Sender` (sendProduceRequest).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hmb.client.producing.batch import PartitionQueue, ProducerBatch
from hmb.client.producing.idempotence import assign_sequence
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.produce import ProduceRequest
from hmb.records import Codec, RecordBatch, compress, encode_message_set, read_records
from hmb.records.batch import MAGIC, wrap_records
from hmb.records.builder import RecordsBuilder
from hmb.records.changed_batch import with_numbers
from hmb.records.producer_numbers import NO_BATCH_NUMBERS, BatchNumbers, ProducerIdAndEpoch, increment_sequence

TopicProduceData = ProduceRequest.TopicProduceData


@dataclass(frozen=True, slots=True)
class Encoding:
    """The settings for encoding batches: codec, compression level, and whether the producer uses transactions."""

    codec: Codec
    level: int | None
    transactional: bool

    def __post_init__(self) -> None:
        """Raise ValueError if the codec does not support the compression level."""
        try:
            compress(self.codec, b"x", level=self.level)
        except Exception as error:  # Catch all types, because each codec raises a different type of exception.
            what = f"{self.codec.name.lower()} has no compression level {self.level}"
            raise ValueError(f"{what}: {error}") from error

    def encode(self, batch: ProducerBatch, version: int, producer: ProducerIdAndEpoch | None, address: str) -> bytes:
        """Return the bytes of a batch, in the format for version `version` of the Produce request.

        Raises KafkaError if the broker is too old for zstd or for record headers, and the batch needs them. The error
        message contains `address`, which is the broker's address.
        """
        if self.codec is Codec.ZSTD and version < ProduceRequest.FIRST_VERSION_OF_ZSTD:
            what = f"{address} is older than Kafka 2.1, which zstd needs"
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, what)
        magic = ProduceRequest.magic_of(version)
        if magic < MAGIC:
            return self._message_set(batch, magic, address)
        records = batch.records
        return wrap_records(
            records.data,
            records.count,
            records.base_timestamp,
            records.max_timestamp,
            self.codec,
            self.level,
            producer=NO_BATCH_NUMBERS if producer is None else batch.numbers or assign_sequence(batch, producer),
            transactional=self.transactional,
        )

    def _message_set(self, batch: ProducerBatch, magic: int, address: str) -> bytes:
        gathered = batch.records
        if self.codec is Codec.NONE and (messages := gathered.message_set(magic)) is not None:
            return messages
        data = wrap_records(gathered.data, gathered.count, gathered.base_timestamp, gathered.max_timestamp, Codec.NONE)
        records = list(read_records(data))
        if any(record.headers for record in records):
            what = f"{address} is older than Kafka 0.11, which record headers need"
            raise KafkaError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, what)
        return encode_message_set(records, magic, self.codec, level=self.level)


def renumbered(data: bytes, new: BatchNumbers) -> bytes:
    """Return a copy of an encoded batch with new numbers: producer id, producer epoch and base sequence."""
    return with_numbers(RecordBatch.parse(data), new)


def halves(batch: ProducerBatch) -> list[ProducerBatch]:
    """Split an encoded batch into two batches that are not encoded yet.

    The records keep their sequence numbers. For example, a batch with the numbers 0 to 9 becomes two batches with the
    numbers 0 to 4 and 5 to 9.
    """
    records = list(read_records(batch.data or b""))
    middle = len(records) // 2
    parts = []
    for first, piece in ((0, records[:middle]), (middle, records[middle:])):
        builder = RecordsBuilder()
        for record in piece:
            builder.append(record.timestamp, record.key, record.value, record.headers)
        half = ProducerBatch(batch.queue, batch.opened, batch.result, batch.first + first, builder)
        half.uncertain_attempts = batch.uncertain_attempts
        if batch.numbers is not None:
            base_sequence = increment_sequence(batch.numbers.base_sequence, first)
            half.numbers = batch.numbers._replace(base_sequence=base_sequence)
        parts.append(half)
    return parts


def requests(batches: Iterable[ProducerBatch], max_size: int) -> list[list[ProducerBatch]]:
    """Group batches into requests of at most `max_size` bytes. A request has at most one batch of each partition.

    If a single batch is larger than `max_size`, the batch is alone in its request.
    """
    found: list[list[ProducerBatch]] = []
    # A request can contain only one batch of each queue, and the batches of a queue must stay in order. This dict maps
    # each queue to the index of the first request that can contain the queue's next batch.
    index_of: dict[PartitionQueue, int] = {}
    sizes: list[int] = []
    for batch in batches:
        index = index_of.get(batch.queue, 0)
        while index < len(found) and sizes[index] + batch.size > max_size:
            index += 1
        if index == len(found):
            found.append([])
            sizes.append(0)
        found[index].append(batch)
        sizes[index] += batch.size
        index_of[batch.queue] = index + 1
    return found


def produce_request(
    batches: Sequence[ProducerBatch], acks: int, timeout_ms: int, transactional_id: str | None
) -> ProduceRequest:
    """Return one Produce request that contains these encoded batches."""
    topics: dict[str, TopicProduceData] = {}
    for batch in batches:
        name, partition = batch.partition
        topic = topics.setdefault(name, TopicProduceData(name=name))
        records = memoryview(batch.data or b"")
        topic.partition_data.append(TopicProduceData.PartitionProduceData(index=partition, records=records))
    return ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=list(topics.values())
    )
