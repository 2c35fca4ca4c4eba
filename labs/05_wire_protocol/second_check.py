"""Tests for the second exercise of lab 5.

In each test, `answer` is the student's module `second.py`, and `rng` generates random test cases.
"""

import hmb
from hmb.labs.varints import zigzag_varint
from hmb.records import Record, crc32c, encode_batch


def frame(content):
    return len(content).to_bytes(4, "big") + content


def refuses(case, call, *arguments):
    """Check that a call raises ValueError, and no other exception."""
    try:
        found = call(*arguments)
    except ValueError:
        return
    except Exception as error:
        raise AssertionError(
            f"{case}: the call must raise ValueError, but raises {type(error).__name__}: {error}"
        ) from error
    raise AssertionError(f"{case}: the call must raise ValueError, but returns {found!r}")


def test_frames(answer, rng):
    """`feed` returns each frame once and in order, no matter how the bytes are split into chunks."""
    contents = [b"tea", b"", b"milk"]
    data = b"".join(map(frame, contents))
    for sizes in ([len(data)], [7, 4, 8], [1] * len(data), [5, 1, 13], [2, 17], [10, 9]):
        reader, position, found = answer.FrameReader(100), 0, []
        for size in sizes:
            found += reader.feed(data[position : position + size])
            position += size
        assert list(map(bytes, found)) == contents, f"the frames {contents}, in chunks of {sizes} bytes: {found}"
    for _ in range(50):
        contents = [rng.randbytes(rng.randrange(30)) for _ in range(6)]
        data, reader, found, sizes = b"".join(map(frame, contents)), answer.FrameReader(100), [], []
        while data:
            sizes.append(rng.randrange(1, 12))
            found += reader.feed(data[: sizes[-1]])
            data = data[sizes[-1] :]
        assert list(map(bytes, found)) == contents, f"six frames, in chunks of {sizes} bytes: feed returns {found}"


def test_lengths(answer):
    """`feed` raises ValueError for a length below 0 or above the limit, before the content of the frame arrives."""
    for length in (101, 2**31 - 1, -1, -(2**31)):
        prefix = length.to_bytes(4, "big", signed=True)
        refuses(f"FrameReader(100), a frame of the length {length}", answer.FrameReader(100).feed, prefix)
        after = frame(b"tea") + prefix
        refuses(f"FrameReader(100), a frame of the length {length} after another", answer.FrameReader(100).feed, after)
    found = answer.FrameReader(100).feed(frame(bytes(100)))
    assert len(found) == 1, f"FrameReader(100), a frame of the length 100: feed returns {found!r}"


def test_varints(answer, rng):
    """`read_varint` decodes a number, and raises ValueError if the varint is incomplete or longer than 5 bytes."""
    numbers = [0, -1, 1, 63, 64, -65, 300, 2**31 - 1, -(2**31)]
    for number in [*numbers, *(rng.randrange(-(2**31), 2**31) for _ in range(100))]:
        data = zigzag_varint(number)
        found, expected = tuple(answer.read_varint(b"xy" + data + b"z", 2)), (number, 2 + len(data))
        assert found == expected, f"varint {data.hex(' ')} at position 2: (number, end) is {found} (right: {expected})"
        refuses(f"the varint {data.hex(' ')} without its last byte", answer.read_varint, data[:-1], 0)
    refuses("a varint of 6 bytes, ff ff ff ff ff 01", answer.read_varint, bytes.fromhex("ffffffffff01"), 0)


def random_records(rng):
    values = [(None, b"tea"), (b"anna", None), (b"", rng.randbytes(rng.randrange(200)))]
    return [Record(offset, 1_700_000_000_000, *rng.choice(values)) for offset in range(rng.randrange(1, 9))]


def test_batches(answer, rng):
    """`read_batch` returns the offset, the key and the value of each record.

    It also decodes a batch that a real broker has written.
    """
    for _ in range(30):
        records = random_records(rng)
        expected = [(record.offset, record.key, record.value) for record in records]
        found = [tuple(each) for each in answer.read_batch(encode_batch(records))]
        assert found == expected, f"a batch with {expected}: read_batch returns {found}"
    with hmb.Broker() as broker:
        broker.create_topic("orders")
        broker.produce("orders", b"one", b"two")
        second = (broker.data_dir / "orders-0" / f"{0:020}.log").read_bytes()
        broker.produce("orders", b"tea", b"milk", key=b"anna")
        whole = (broker.data_dir / "orders-0" / f"{0:020}.log").read_bytes()
    expected = [(2, b"anna", b"tea"), (3, b"anna", b"milk")]
    found = [tuple(each) for each in answer.read_batch(whole[len(second) :])]
    assert found == expected, f"a real batch with the base offset 2 and {expected}: read_batch returns {found}"


def test_damage(answer, rng):
    """`read_batch` raises ValueError if a byte after the CRC has changed.

    It also raises ValueError if the end of the batch is missing, or if further bytes follow the batch.
    """
    data = encode_batch(random_records(rng))
    for place in [17, 20, 21, 57, 60, len(data) - 1, *(rng.randrange(21, len(data)) for _ in range(40))]:
        damaged = data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
        refuses(f"a batch of {len(data)} bytes, and byte {place} has changed", answer.read_batch, damaged)
    for length in [0, 11, 60, 61, len(data) - 1]:
        refuses(f"the first {length} of {len(data)} bytes of a batch", answer.read_batch, data[:length])
    refuses("a batch, and one byte after its end", answer.read_batch, data + b"\0")


def test_wrong_contents(answer):
    """`read_batch` raises ValueError if a length or the number of records is wrong, even if the CRC is right."""
    data = bytearray(encode_batch([Record(0, 1_700_000_000_000, b"key", b"value")]))
    numbers = {
        "number of records 2": (57, b"\0\0\0\2"), "number of records 2^31 - 1": (57, b"\x7f\xff\xff\xff"),
        "number of records 0": (57, bytes(4)), "number of records -1": (57, b"\xff" * 4),
        "key length 60": (65, b"\x78"), "key length -3": (65, b"\x05"), "value length 60": (69, b"\x78"),
        "record length 4": (61, b"\x08"),
    }  # fmt: skip
    for case, (place, wrong) in numbers.items():
        damaged = data.copy()
        damaged[place : place + len(wrong)] = wrong
        damaged[17:21] = crc32c(bytes(damaged[21:])).to_bytes(4, "big")
        refuses(f"a batch of one record with a key and a value, and its {case}", answer.read_batch, bytes(damaged))
