"""Tests for the requirements of lab 5.

In each test, `answer` is the student's module `answer.py`, and `rng` generates random test cases.
"""

import socket
import struct

import hmb
from hmb.labs.varints import zigzag_varint
from hmb.protocol.errors import ErrorCode
from hmb.records import Record, encode_batch

TIME = 1_700_000_000_000  # ms since 1970


def shown(data):
    return data.hex(" ") if isinstance(data, bytes | bytearray) and data else repr(data)


def test_varint(answer, rng):
    """`varint` encodes small, large and negative numbers."""
    numbers = [0, -1, 1, 63, 64, -64, -65, 300, -300, 2**31 - 1, -(2**31)]
    for number in [*numbers, *(rng.randrange(-(2**31), 2**31) for _ in range(100))]:
        expected, found = zigzag_varint(number), answer.varint(number)
        assert found == expected, f"varint({number}) is {shown(found)} (right: {shown(expected)})"


def expected_record(delta, key, value):
    parts = [zigzag_varint(-1) if data is None else zigzag_varint(len(data)) + data for data in (key, value)]
    body = b"\0\0" + zigzag_varint(delta) + b"".join(parts) + b"\0"
    return zigzag_varint(len(body)) + body


def test_record(answer, rng):
    """`record` encodes keys and values, and encodes a missing key or value as null."""
    cases = [(0, None, b"tea"), (1, b"anna", b"tea"), (2, b"", b""), (0, b"anna", None), (70, None, None)]
    cases += [(rng.randrange(1000), rng.randbytes(rng.randrange(200)), rng.randbytes(70)) for _ in range(20)]
    for case in cases:
        expected, found = expected_record(*case), answer.record(*case)
        assert found == expected, f"record{case} is {shown(found)} (right: {shown(expected)})"


REASONS = {  # what an error code of the broker means here
    ErrorCode.CORRUPT_MESSAGE: ": the CRC or the length of the batch is wrong",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ": the name of the topic or the index of the partition is wrong",
    ErrorCode.INVALID_RECORD: ": a record or the number of records is wrong",
}
FIELDS = [
    *(("base offset", 0, 8), ("batch length", 8, 12), ("partition leader epoch", 12, 16), ("magic", 16, 17)),
    *(("attributes", 21, 23), ("last offset delta", 23, 27), ("base timestamp", 27, 35), ("max timestamp", 35, 43)),
    *(("producer id", 43, 51), ("producer epoch", 51, 53), ("base sequence", 53, 57), ("number of records", 57, 61)),
]


def test_batch(answer, rng):
    """The result of `batch` has the right header fields, length, records and CRC."""
    short = [(b"anna", b"tea"), (b"ben", None)]
    for records in (short[:1], short, [(None, b"tea")], [*short, (None, rng.randbytes(80))]):
        expected = encode_batch([Record(delta, TIME, key, value) for delta, (key, value) in enumerate(records)])
        found = answer.batch(list(records), TIME)
        case = f"batch({records}, {TIME})"
        assert isinstance(found, bytes | bytearray), f"{case} returns {found!r} (right: bytes)"
        assert len(found) >= 61, f"{case} has {len(found)} bytes, but the header alone has 61"
        for name, begin, end in FIELDS:
            right, given = (int.from_bytes(data[begin:end], signed=True) for data in (expected, found))
            assert given == right, f"{case}: the {name} (bytes {begin} to {end - 1}) is {given} (right: {right})"
        right, given = shown(expected[61:]), shown(found[61:])
        assert given == right, f"{case}: the records are {given} (right: {right})"
        right, given = expected[17:21].hex(), found[17:21].hex()
        assert given == right, f"{case}: the CRC-32C of the bytes from 21 on is {given} (right: {right})"


def test_the_fields_before_the_records(answer, rng):
    """`produce` returns a whole frame with the given correlation id.

    The transactional id in the request is null, and `acks` is 1.
    """
    number = rng.randrange(1, 2**31)
    frame = answer.produce("orders", answer.batch([(b"anna", b"tea")], TIME), number)
    assert isinstance(frame, bytes | bytearray), f"produce returns {frame!r} (right: bytes)"
    assert len(frame) > 14, f"produce returns {len(frame)} bytes; the length and the header alone have 14"
    length, key, version, correlation_id, client_id_length = struct.unpack_from(">ihhih", frame)
    rest = len(frame) - 4
    assert length == rest, f"the length at the beginning of the frame is {length} (right: {rest})"
    assert (key, version) == (0, 3), f"the api key and the api version are {key} and {version} (right: 0 and 3)"
    assert correlation_id == number, f"produce(..., {number}): the frame has the correlation id {correlation_id}"
    end = 14 + max(0, client_id_length)  # the position after the client id
    assert end + 4 <= len(frame), f"the client id has the length {client_id_length}, but the frame ends before"
    transactional_id, acks = struct.unpack_from(">hh", frame, end)
    given = f"has the length {transactional_id} (right: -1, which means null)"
    assert transactional_id == -1, f"the transactional id (bytes {end} and {end + 1} of the frame) {given}"
    assert acks == 1, f"acks (bytes {end + 2} and {end + 3} of the frame) is {acks} (right: 1)"


def ask(broker, frame):
    """Send a frame to the broker through a plain socket. Return the response without its length field.

    Return None if the broker closes the connection without a response.
    """
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection, connection.makefile("rb") as stream:
        connection.sendall(frame)
        connection.shutdown(socket.SHUT_WR)
        prefix = stream.read(4)
        return stream.read(int.from_bytes(prefix)) if len(prefix) == 4 else None


def test_a_real_broker(answer, rng):
    """A real broker appends the records of your frame to the log, and answers without an error."""
    with hmb.Broker() as broker:
        broker.create_topic("orders")
        for records in ([(None, b"tea")], [(b"anna", rng.randbytes(300)), (b"ben", b"milk")]):
            before = len(broker.records("orders"))
            number = rng.randrange(1, 2**31)
            frame = answer.produce("orders", answer.batch(list(records), TIME), number)
            assert isinstance(frame, bytes | bytearray), f"produce returns {frame!r} (right: bytes)"
            response = ask(broker, frame)
            why = "the broker sends no response: a field before the records is wrong (for example, acks is 0)"
            assert response is not None, f"{why}; lab.md shows how `hmb decode -` prints the fields of your frame"
            found = int.from_bytes(response[:4])
            assert found == number, f"the response has the correlation id {found}; the request should have {number}"
            code = int.from_bytes(response[4 + 4 + 2 + 6 + 4 + 4 :][:2], signed=True)
            name = ErrorCode(code).name
            assert code == 0, f"the broker answers the error code {code} ({name}{REASONS.get(code, '')}; right: 0)"
            stored = [(record.key, record.value) for record in broker.records("orders")][before:]
            assert stored == list(records), f"the log contains {stored} instead of {records}"
