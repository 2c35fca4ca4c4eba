"""Every codec decompresses to the original data. No input makes a codec use more memory than the limit."""

import subprocess
import sys
import tracemalloc
import zlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.compression import Codec, codec_of, compress, decompress, lz4_frame, snappy_framing

COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]
MB = 1 << 20


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", Codec)
@given(data=st.binary(max_size=200), times=st.sampled_from([1, 3, 1000]))
def test_round_trip(codec: Codec, magic: int, data: bytes, times: int) -> None:
    data *= times
    assert decompress(codec, compress(codec, data, magic), magic=magic, limit=len(data)) == data


@pytest.mark.parametrize(("codec", "levels"), [(Codec.GZIP, (1, 9)), (Codec.LZ4, (1, 17)), (Codec.ZSTD, (-131072, 19))])
def test_a_higher_level_is_smaller(codec: Codec, levels: tuple[int, int]) -> None:
    data = b"".join(b'{"id": %d, "user": "user %d"}' % (n, n * n % 1001) for n in range(6_000))
    fast, small = (compress(codec, data, level=level) for level in levels)
    assert len(small) < 0.9 * len(fast)
    assert decompress(codec, fast) == decompress(codec, small) == data


@pytest.mark.parametrize("level", [1, 3, 12, 17])
@given(data=st.binary(max_size=100), times=st.sampled_from([0, 1, 2_000]))
def test_lz4_levels_change_no_frame(level: int, data: bytes, times: int) -> None:
    data *= times
    packed = lz4_frame.compress(data, level=level)
    assert packed[:7] == bytes.fromhex("04224d18 60 40 82")  # 60: independent blocks, as Java's reader requires
    assert decompress(Codec.LZ4, packed, limit=len(data)) == data


@pytest.mark.parametrize("codec", COMPRESSING)
def test_the_limit_is_exact(codec: Codec) -> None:
    packed = compress(codec, bytes(100_000))
    assert len(decompress(codec, packed, limit=100_000)) == 100_000
    with pytest.raises(KafkaError) as refused:
        decompress(codec, packed, limit=99_999)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", COMPRESSING)
def test_decompressed_content_is_held_once(codec: Codec) -> None:
    """The function `decompress` keeps only one copy of the decompressed content in memory.

    Before a bug was fixed, `decompress` copied its result. For gzip, it also kept all pieces of the content in memory
    until it joined them.
    """
    packed = compress(codec, bytes(8 * MB))
    tracemalloc.start()
    try:
        assert len(decompress(codec, packed)) == 8 * MB
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The content has 8 MB. For gzip, the buffer can be an eighth (1 MB) larger, and the newest piece has 1 MB.
    assert peak < 11 * MB


@pytest.mark.parametrize("codec", COMPRESSING)
def test_cut_anywhere_is_an_error(codec: Codec) -> None:
    packed = compress(codec, b"to be cut " * 20)
    for size in range(len(packed)):
        if codec is Codec.SNAPPY and size == len(snappy_framing.HEADER):
            continue  # A header without a block is a valid empty stream.
        with pytest.raises(KafkaError) as refused:
            decompress(codec, packed[:size])
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", COMPRESSING)
@given(junk=st.binary(max_size=60))
def test_junk_is_a_kafka_error(codec: Codec, junk: bytes) -> None:
    for data in (junk, compress(codec, b"something longer than that")[:15] + junk):
        try:
            decompress(codec, data, limit=MB)
        except KafkaError as error:
            assert error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


def test_numbers_without_a_codec() -> None:
    assert codec_of(0x1C) is Codec.ZSTD
    with pytest.raises(KafkaError) as refused:
        codec_of(5)
    assert refused.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_gzip_of_several_members() -> None:
    packed = compress(Codec.GZIP, b"one, ") + compress(Codec.GZIP, b"two")
    assert decompress(Codec.GZIP, packed, limit=8) == b"one, two"
    with pytest.raises(KafkaError):
        decompress(Codec.GZIP, packed, limit=7)


def test_snappy_plain_blocks_of_other_clients() -> None:
    data = b"no framing at all" * 10
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data


def test_snappy_frames_as_java_writes_them() -> None:
    packed = compress(Codec.SNAPPY, bytes(40_000))
    assert packed[:16] == bytes.fromhex("82 534e41505059 00 00000001 00000001")
    first = int.from_bytes(packed[16:20], "big")
    assert cramjam.snappy.decompress_raw_len(packed[20 : 20 + first]) == 32 * 1024


def test_lz4_header_checksum_of_old_clients() -> None:
    """In Kafka's clients before 0.10, the header checksum of lz4 wrongly includes the magic number (KAFKA-3160).

    A reader of message format 0 must therefore ignore this checksum.
    """
    right, broken = compress(Codec.LZ4, b"x", magic=1), compress(Codec.LZ4, b"x", magic=0)
    assert right[:7] == bytes.fromhex("04224d18 60 40 82")
    assert broken[:7] == bytes.fromhex("04224d18 60 40 1a")
    assert right[7:] == broken[7:]
    assert decompress(Codec.LZ4, right, magic=0) == decompress(Codec.LZ4, broken, magic=0) == b"x"
    with pytest.raises(KafkaError, match="checksum"):
        decompress(Codec.LZ4, broken, magic=1)


def test_lz4_frames_with_linked_blocks() -> None:
    """HMB reads lz4 frames with linked blocks, which lz4 libraries write by default.

    Kafka's Java reader rejects them.
    """
    data = b"".join(b"%d " % n for n in range(40_000))
    linked = bytes(cramjam.lz4.compress(data))
    assert not linked[4] & 0x20
    assert decompress(Codec.LZ4, linked, limit=len(data)) == data


def test_lz4_header_checksum_is_xxhash() -> None:
    frame = bytes(cramjam.lz4.compress(b"any"))
    assert lz4_frame.header_checksum(frame[4:6]) == frame[6]


def bomb(codec: Codec, megabytes: int) -> bytes:
    """Return the given number of megabytes of zeros, compressed."""
    if codec is Codec.GZIP:
        stream = zlib.compressobj(wbits=31)
        return b"".join([stream.compress(bytes(MB)) for _ in range(megabytes)]) + stream.flush()
    return compress(codec, bytes(megabytes * MB))


BOMB = """
import resource, sys
from hmb.protocol.errors import KafkaError
from hmb.records.compression import Codec, decompress
data = sys.stdin.buffer.read()
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before = peak()
try:
    decompress(Codec[sys.argv[1]], data, limit=16 << 20)
except KafkaError as error:
    print(error.code.name, peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_bomb_stays_below_the_limit(codec: Codec) -> None:
    """`decompress` refuses data with a decompressed size of 300 MB, because the limit is 16 MB.

    The call of `decompress` uses less than 28 MB of memory: the limit, one window of the codec, and some reserve.
    """
    command = [sys.executable, "-c", BOMB, codec.name]
    run = subprocess.run(command, input=bomb(codec, 300), capture_output=True, check=True)
    code, kilobytes = run.stdout.decode().split()
    assert code == "MESSAGE_TOO_LARGE"
    assert int(kilobytes) < 28 * 1024


def test_a_false_snappy_size_is_rejected() -> None:
    """A snappy block of ten bytes that claims a decompressed size of 100 MB is rejected."""
    claim = bytes([0x80, 0x80, 0x80, 0x32]) + b"abcdef"
    with pytest.raises(KafkaError) as refused:
        decompress(Codec.SNAPPY, claim, limit=1 << 40)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
