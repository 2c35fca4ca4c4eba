"""Messages: the formats v0 (Kafka 0.8) and v1 (Kafka 0.10, KIP-32), which Kafka used before record batches.

Each message has its own offset, CRC and attributes, big endian. A message set is a sequence of messages:
     0  int64  offset
     8  int32  message size        number of bytes after this field
    12  uint32 CRC-32              of all bytes from the magic on
    16  int8   magic               number of the format: 0 (v0) or 1 (v1)
    17  int8   attributes          bits 0-2 codec; magic 1: bit 3 timestamp type
    18  int64  timestamp           magic 1 only
        int32  key length (-1: null), key
        int32  value length (-1: null), value

A *wrapper* is a message whose value is a compressed message set. The codec of a wrapper is not 0. The messages
in the set are the *inner messages*. The offset of a wrapper is the offset of its *last* inner message. A reader
that needs only greater offsets can skip the wrapper without decompressing it.

A v1 wrapper usually has the greatest timestamp of its inner messages. With
`message.timestamp.type=LogAppendTime`, the broker sets only the wrapper's timestamp, to the append time.
Readers use this time for all inner messages.

In a v0 wrapper, each inner message contains its offset in the log. To write these offsets, the broker must
decompress the set and compress it again.

In a v1 wrapper, the producer gives the inner messages the relative offsets 0, 1, 2 and so on (KIP-31). The
broker keeps these offsets, so it need not compress the inner messages again.

For example, a v1 wrapper contains three inner messages with the relative offsets 0, 1 and 2. The wrapper has
the offset 102, which is the log offset of its last inner message. The log offsets of the three inner messages
are therefore 100, 101 and 102.

The classes `Message` and `RecordBatch` have properties with the same names, so other code can use a message in the same
way as a batch. If a message is a wrapper (it contains a compressed message set), it is like a batch of several records.
Any other message is like a batch of one record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import ClassVar, NamedTuple, Self

from hmb.protocol.enums import INT64_MAX, NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from hmb.protocol.errors import corrupt_message, invalid_record
from hmb.records.batch import LOG_APPEND_TIME_BIT, LOG_OVERHEAD, MAGIC_POSITION, OFFSET_AND_LENGTH
from hmb.records.compression import DEFAULT_LIMIT, Codec, codec_of, decompress_writable
from hmb.records.crc import crc32
from hmb.records.record import NO_TIMESTAMP, Record, TimestampType

# Without a key and a value, a message has 26 bytes in magic 0, and 34 bytes in magic 1.
MESSAGE_OVERHEAD = (26, 34)
KEY_START = (18, 26)

_OFFSET_SIZE_CRC = Struct(f"{OFFSET_AND_LENGTH.format}I")
MESSAGE_HEADER = Struct(f"{_OFFSET_SIZE_CRC.format}bb")  # the fields before the timestamp of magic 1
# _BODY[magic] decodes the fields from the magic byte to the key length (included). Magic 0 has no timestamp.
_BODY = (Struct(">bbi"), Struct(">bbqi"))
_INT64, _INT32 = Struct(">q"), Struct(">i")


class _Header(NamedTuple):
    offset: int
    message_size: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    view: memoryview  # the bytes of the message, or only its first bytes if the buffer ends inside the message


class Message(_Header):
    """The fields of a message's header, and a memoryview of the bytes of the whole message.

    The message may be a wrapper: a message that contains a compressed message set.
    """

    __slots__ = ()

    # The same code can handle a `RecordBatch` and an old message, because both have these attributes. The format of an
    # old message does not contain them, so each constant means "no value".
    producer_id: ClassVar[int] = NO_PRODUCER_ID
    producer_epoch: ClassVar[int] = NO_PRODUCER_EPOCH
    base_sequence: ClassVar[int] = NO_SEQUENCE
    last_sequence: ClassVar[int] = NO_SEQUENCE
    partition_leader_epoch: ClassVar[int] = NO_LEADER_EPOCH
    records_count: ClassVar[int | None] = None
    is_transactional: ClassVar[bool] = False
    is_control: ClassVar[bool] = False

    @classmethod
    def parse(cls, buffer: bytes | bytearray | memoryview, position: int = 0) -> Self:
        """Decode the header of the message at `position`.

        The key and the value can be missing in the buffer. Raises CORRUPT_MESSAGE if the header is incomplete, its
        magic is not 0 or 1, or its message size is too small.
        """
        view = memoryview(buffer)[position:]
        if len(view) < MESSAGE_OVERHEAD[0]:
            raise corrupt_message(f"only {len(view)} bytes are left, but a message has at least {MESSAGE_OVERHEAD[0]}")
        offset, message_size, crc, magic, attributes = MESSAGE_HEADER.unpack_from(view)
        if magic not in (0, 1):
            raise corrupt_message(f"no message has magic {magic}")
        size = LOG_OVERHEAD + message_size
        if size < MESSAGE_OVERHEAD[magic] or len(view) < MESSAGE_OVERHEAD[magic]:
            why = f"a message of magic {magic} has at least {MESSAGE_OVERHEAD[magic]} bytes, not {min(size, len(view))}"
            raise corrupt_message(why)
        timestamp = _INT64.unpack_from(view, MESSAGE_HEADER.size)[0] if magic == 1 else NO_TIMESTAMP
        return cls(offset, message_size, crc, magic, attributes, timestamp, view[:size])

    @property
    def size(self) -> int:
        """The number of bytes of the whole message, including its header."""
        return LOG_OVERHEAD + self.message_size

    @property
    def last_offset(self) -> int:
        return self.offset

    @property
    def base_offset(self) -> int:
        """The offset of the first record.

        For a wrapper (a compressed message set), this property must decompress the records.
        """
        return self.offset if self.codec is Codec.NONE else next(self.records()).offset

    @property
    def max_timestamp(self) -> int:
        return self.timestamp

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType.LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else TimestampType.CREATE_TIME

    def check(self) -> None:
        """Raise CORRUPT_MESSAGE if the message is malformed.

        A message is malformed if it is incomplete, or if its CRC, its key length or its value length is wrong.
        """
        if len(self.view) != self.size:
            raise corrupt_message(f"{len(self.view)} of the message's {self.size} bytes are there")
        computed = crc32(self.view[MAGIC_POSITION:])
        if computed != self.crc:
            why = f"the message's CRC is {self.crc:#010x}, but the CRC of its bytes is {computed:#010x}"
            raise corrupt_message(why)
        self.key_and_value()

    def key_and_value(self) -> tuple[memoryview | None, memoryview | None]:
        """Return memoryviews of the key and the value.

        Raises CORRUPT_MESSAGE if the value does not end at the end of the message.
        """
        key, position = self._sized(KEY_START[self.magic])
        value, position = self._sized(position)
        if position != self.size:
            raise corrupt_message(f"key and value of a message of {self.size} bytes end at {position}")
        return key, value

    def _sized(self, position: int) -> tuple[memoryview | None, int]:
        start = position + 4
        if start > len(self.view):
            raise corrupt_message(f"a message of {len(self.view)} bytes has a length at {position}")
        (size,) = _INT32.unpack_from(self.view, position)
        if size < 0:
            return None, start
        if size > len(self.view) - start:
            raise corrupt_message(f"a field at {position} claims {size} bytes of {len(self.view) - start} left")
        return self.view[start : start + size], start + size

    @property
    def log_append_time(self) -> int | None:
        """The timestamp (ms) that the broker has set for all records in this message.

        None means that the producer has set the timestamps.
        """
        return self.timestamp if self.timestamp_type is TimestampType.LOG_APPEND_TIME else None

    def records(self, limit: int = DEFAULT_LIMIT) -> Iterator[Record]:
        """Yield the records in this message: one record, or all records of a compressed message set.

        The caller must call `check` first. Raises MESSAGE_TOO_LARGE if the compressed message set has more than
        `limit` bytes after decompression.
        """
        log_append_time = self.log_append_time
        for offset, message in self.entries(limit):
            record = message._record(offset)
            if log_append_time is not None:
                record.timestamp, record.timestamp_type = log_append_time, TimestampType.LOG_APPEND_TIME
            yield record

    def entries(self, limit: int = DEFAULT_LIMIT) -> Iterator[tuple[int, Message]]:
        """Yield this message and its offset. For a wrapper, yield each inner message and its absolute offset.

        A wrapper contains a compressed message set, and the messages of this set are the inner messages. They are
        memoryviews of the decompressed bytes, so keys and values are not copied. The caller must call `check` first.
        """
        if self.codec is Codec.NONE:
            yield self.offset, self
            return
        data = self.decompressed(limit)
        shift = self.offset - _last_offset(data) if self.magic == 1 else 0
        for message in self._inner_messages(data):
            if abs(message.offset + shift) > INT64_MAX:
                raise invalid_record(f"a message at {message.offset} inside a wrapper at {self.offset}")
            yield message.offset + shift, message

    def inner_messages(self, limit: int = DEFAULT_LIMIT) -> Iterator[Message]:
        """Yield the inner messages of a wrapper (a compressed message set), with the offsets that are stored in them.

        Raises INVALID_RECORD in these cases:

        - The set is empty.
        - An inner message is a wrapper.
        - An inner message and the wrapper have different formats (magic 0 or 1).
        """
        return self._inner_messages(self.decompressed(limit))

    def _inner_messages(self, data: memoryview) -> Iterator[Message]:
        position = 0
        while position < len(data):
            message = Message.parse(data, position)
            if message.magic != self.magic or message.codec is not Codec.NONE:
                raise invalid_record(f"a message of magic {message.magic}, codec {message.codec.name} inside a wrapper")
            yield message
            position += message.size

    def decompressed(self, limit: int = DEFAULT_LIMIT) -> memoryview:
        """Return the decompressed message set of this message, which must be a wrapper.

        A wrapper is a message whose value is a compressed message set. The caller may change the returned bytes.
        """
        _, value = self.key_and_value()
        if value is not None and (data := decompress_writable(self.codec, value, limit=limit, magic=self.magic)):
            return data
        raise invalid_record("a compressed message without messages inside")

    def _record(self, offset: int) -> Record:
        key, value = self.key_and_value()
        return Record(
            offset,
            self.timestamp,
            None if key is None else bytes(key),
            None if value is None else bytes(value),
            (),
            self.timestamp_type,
        )


def encode_message(
    offset: int,
    magic: int,
    attributes: int,
    timestamp: int,
    key: bytes | memoryview | None,
    value: bytes | memoryview | None,
) -> bytes:
    """Encode one message. If `magic` is 0, the timestamp is omitted."""
    return b"".join(message_parts(offset, magic, attributes, timestamp, key, value))


def message_parts(
    offset: int,
    magic: int,
    attributes: int,
    timestamp: int,
    key: bytes | memoryview | None,
    value: bytes | memoryview | None,
) -> tuple[bytes | memoryview, ...]:
    """Encode one message as a list of parts, in the order of the bytes. The key and the value are not copied."""
    key_size = -1 if key is None else len(key)
    value_size = _INT32.pack(-1 if value is None else len(value))
    before_key = (
        _BODY[1].pack(magic, attributes, timestamp, key_size) if magic else _BODY[0].pack(0, attributes, key_size)
    )
    key, value = key or b"", value or b""
    crc = crc32(value, crc32(value_size, crc32(key, crc32(before_key))))
    size = 8 + len(before_key) + len(key) + len(value)  # 8 = 4 (CRC) + 4 (the value's length)
    return _OFFSET_SIZE_CRC.pack(offset, size, crc), before_key, key, value_size, value


def head_without_key(magic: int, timestamp: int, value_size: int) -> bytes:
    """Return the bytes between the CRC and the value of an uncompressed message without a key."""
    before_length = _BODY[1].pack(magic, 0, timestamp, -1) if magic else _BODY[0].pack(0, 0, -1)
    return before_length + _INT32.pack(value_size)


def encode_messages(
    first_offset: int, magic: int, timestamp: int, values: Iterable[tuple[bytes]], value_size: int
) -> list[bytes]:
    """Encode messages that have no keys. All values must have the same size.

    `magic` (0 or 1) is the format of the messages. The CRC of a message covers some fields and then the value.
    These fields are the same in all messages, so the function computes their CRC only once. For each message, it
    continues from this CRC with the bytes of the value.
    """
    before = head_without_key(magic, timestamp, value_size)
    size, crc_before = 4 + len(before) + value_size, crc32(before)
    pack = Struct(f"{_OFFSET_SIZE_CRC.format}{len(before)}s{value_size}s").pack
    return [
        pack(offset, size, crc32(value, crc_before), before, value)
        for offset, (value,) in enumerate(values, first_offset)
    ]


def _last_offset(messages: memoryview) -> int:
    """Return the offset of the last message in a message set.

    A set may have millions of messages, so the loop decodes only the size of each message.
    """
    offset = position = 0
    while position < len(messages):
        if len(messages) - position < LOG_OVERHEAD:
            left = len(messages) - position
            raise corrupt_message(f"only {left} bytes are left, but a message has at least {MESSAGE_OVERHEAD[0]}")
        offset, size = OFFSET_AND_LENGTH.unpack_from(messages, position)
        if size < 0:
            raise corrupt_message(f"a message claims {size} bytes")
        position += LOG_OVERHEAD + size
    return int(offset)
