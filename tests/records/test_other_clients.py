"""Tests of HMB with kafka-python and aiokafka: each one decodes the records that the others encode."""

from collections.abc import Callable, Iterable
from typing import Any

import aiokafka.record.default_records as aio_default
import aiokafka.record.legacy_records as aio_legacy
import kafka.record.default_records as kp_default
import kafka.record.legacy_records as kp_legacy
import pytest

from hmb.records import Codec, Record, assign_offsets, encode_batch, encode_message_set, parse_batch, read_records

RECORDS = [
    Record(0, 1_700_000_000_000, b"key", b"value"),
    Record(1, 1_700_000_000_500, None, b"no key"),
    Record(2, 1_700_000_000_100, b"tombstone", None),
    Record(3, 1_700_000_000_100, b"", b""),
    *[Record(n, 1_700_000_001_000 + n, b"%d" % n, b"the same again and again %d" % n) for n in range(4, 300)],
]
WITH_HEADERS = [Record(0, 5, b"k", b"v", (("a", b"1"), ("a", None), ("ключ", b"")))]

Encoder = Callable[[list[Record], int, Codec], bytes]
Decoder = Callable[[bytes, int], list[tuple[Any, ...]]]


def encode_with(default: Any, legacy: Any) -> Encoder:
    def encode(records: list[Record], magic: int, codec: Codec) -> bytes:
        builder = default(2, codec, 0, -1, -1, -1, 1 << 20) if magic == 2 else legacy(magic, codec, 1 << 20)
        for index, r in enumerate(records):
            builder.append(index, timestamp=r.timestamp, key=r.key, value=r.value, headers=list(r.headers))
        return bytes(builder.build())

    return encode


def decode_with(default: Any, legacy: Any) -> Decoder:
    def decode(data: bytes, magic: int) -> list[tuple[Any, ...]]:
        batch = default(data) if magic == 2 else legacy(data, magic)
        assert batch.validate_crc()
        return [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]

    return decode


ENCODERS = {
    "kafka-python": encode_with(kp_default.DefaultRecordBatchBuilder, kp_legacy.LegacyRecordBatchBuilder),
    "aiokafka": encode_with(aio_default.DefaultRecordBatchBuilder, aio_legacy.LegacyRecordBatchBuilder),
    "aiokafka (Python)": encode_with(aio_default._DefaultRecordBatchBuilderPy, aio_legacy._LegacyRecordBatchBuilderPy),
}
DECODERS = {
    "kafka-python": decode_with(kp_default.DefaultRecordBatch, kp_legacy.LegacyRecordBatch),
    "aiokafka": decode_with(aio_default.DefaultRecordBatch, aio_legacy.LegacyRecordBatch),
    "aiokafka (Python)": decode_with(aio_default._DefaultRecordBatchPy, aio_legacy._LegacyRecordBatchPy),
}
# The old formats do not support zstd. For lz4 in magic 0 these clients need another library.
FORMATS = [(1, codec) for codec in Codec if codec is not Codec.ZSTD] + [(2, codec) for codec in Codec]
FORMATS += [(0, Codec.NONE), (0, Codec.GZIP), (0, Codec.SNAPPY)]


def as_tuples(records: Iterable[Record], magic: int) -> list[tuple[Any, ...]]:
    return [(r.offset, r.timestamp if magic else None, r.key, r.value, r.headers) for r in records]


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
@pytest.mark.parametrize("client", ENCODERS)
def test_hmb_reads_their_records(client: str, magic: int, codec: Codec) -> None:
    data = ENCODERS[client](RECORDS, magic, codec)
    assert parse_batch(data).codec is codec
    # In the old formats, kafka-python and aiokafka write the offset 0 for a compressed message set. A broker replaces
    # this offset with the offset of the last message. Here, the function `assign_offsets` does the same.
    if magic < 2:
        assert [r.offset for r in read_records(assign_offsets(data, 1000).data)] == list(range(1000, 1300))
        data = assign_offsets(data, 0).data
    assert as_tuples(read_records(data), magic) == as_tuples(RECORDS, magic)


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
@pytest.mark.parametrize("client", DECODERS)
def test_they_read_the_records_of_hmb(client: str, magic: int, codec: Codec) -> None:
    if magic == 2:
        data = encode_batch(RECORDS, codec=codec)
    elif codec is Codec.NONE:
        # These clients' decoders read only one uncompressed message at a time, so the test gives them only one message.
        assert DECODERS[client](encode_message_set(RECORDS[:1], magic), magic) == as_tuples(RECORDS[:1], magic)
        return
    else:
        data = encode_message_set(RECORDS, magic, codec)
    assert DECODERS[client](data, magic) == as_tuples(RECORDS, magic)


@pytest.mark.parametrize("client", ENCODERS)
def test_headers(client: str) -> None:
    assert list(read_records(ENCODERS[client](WITH_HEADERS, 2, Codec.NONE))) == WITH_HEADERS
    assert DECODERS[client](encode_batch(WITH_HEADERS), 2) == as_tuples(WITH_HEADERS, 2)


@pytest.mark.parametrize("client", ENCODERS)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_uncompressed_batches_have_the_same_bytes(client: str, magic: int) -> None:
    ours = encode_batch(RECORDS) if magic == 2 else encode_message_set(RECORDS, magic)
    theirs = bytearray(ENCODERS[client](RECORDS, magic, Codec.NONE))
    if magic == 2:
        theirs[12:16] = ours[12:16]  # The leader epochs differ, because a producer may set any number.
    assert theirs == ours
