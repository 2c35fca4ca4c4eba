"""Tests of malformed records: the decoder raises a KafkaError, and raises it quickly."""

import contextlib
from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from hmb.protocol.errors import KafkaError
from hmb.records import (
    Codec,
    DownConversion,
    Record,
    RecordBatch,
    assign_offsets,
    encode_batch,
    encode_message_set,
    iter_batches,
    parse_batch,
    read_records,
)
from hmb.records.batch import RECORD_BATCH_OVERHEAD
from hmb.records.crc import crc32, crc32c

RECORDS = [Record(timestamp=n, key=b"key", value=b"value" * n, headers=(("h", b"v"),)) for n in range(4)]
LIMIT = 1 << 20


def convert(data: bytes, magic: int) -> None:
    """Convert a log to an old format, and check that no error occurs after the conversion has computed its size.

    A broker sends the size to the client before the converted messages. If an error occurred after that, the broker
    would have to close the connection to this client.
    """
    with contextlib.suppress(KafkaError):
        conversion = DownConversion(lambda size, at: data[at : at + size], range(len(data)), magic, 0, LIMIT, LIMIT)
        if conversion.size:
            try:
                assert sum(map(len, conversion.pieces())) == conversion.size
            except KafkaError as error:
                raise AssertionError("the conversion computed a size, but then raised an error") from error


def feed(data: bytes) -> None:
    readers: list[Callable[[], object]] = [
        lambda: parse_batch(data).check(),
        lambda: list(read_records(data, limit=LIMIT)),
        lambda: [list(batch.records(LIMIT)) for batch in iter_batches(data)],
        lambda: assign_offsets(data, 5, limit=LIMIT),
        lambda: convert(data, 0),
        lambda: convert(data, 1),
    ]
    for read in readers:
        try:
            read()
        except KafkaError:
            continue


@given(st.binary(max_size=200))
@example(b"")
def test_random_bytes(data: bytes) -> None:
    feed(data)


mutations = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4)


def mutate(data: bytes, changes: list[tuple[int, int]]) -> bytearray:
    mutated = bytearray(data)
    for position, byte in changes:
        mutated[position % len(mutated)] = byte
    return mutated


@given(changes=mutations, codec=st.sampled_from(Codec), magic=st.integers(0, 2))
def test_mutated_batches(changes: list[tuple[int, int]], codec: Codec, magic: int) -> None:
    data = encode_batch(RECORDS, codec=codec) if magic == 2 else encode_message_set(RECORDS, magic, codec)
    feed(mutate(data, changes))


@given(changes=mutations, codec=st.sampled_from(Codec), magic=st.integers(0, 2))
def test_mutated_batches_with_a_right_crc(changes: list[tuple[int, int]], codec: Codec, magic: int) -> None:
    """For damaged records with a correct CRC, the decoder raises no error except KafkaError.

    An attacker can compute the CRC of damaged bytes, so the CRC alone does not protect the decoder.
    """
    if magic == 2:
        data = mutate(encode_batch(RECORDS, codec=codec), changes)
        data[17:21] = crc32c(memoryview(data)[21:]).to_bytes(4, "big")
    else:
        data = mutate(encode_message_set(RECORDS[:1], magic, codec), changes)
        data[12:16] = crc32(memoryview(data)[16:]).to_bytes(4, "big")
    feed(data)


def test_a_batch_that_claims_two_billion_records() -> None:
    data = bytearray(encode_batch(RECORDS))
    data[23:27] = data[57:61] = (2**31 - 1).to_bytes(4, "big")
    data[17:21] = crc32c(memoryview(data)[21:]).to_bytes(4, "big")
    feed(data)
    assert RecordBatch.parse(data).size == len(data) > RECORD_BATCH_OVERHEAD
