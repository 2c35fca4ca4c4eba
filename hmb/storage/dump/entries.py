"""The entries of a dump. Each entry can be printed as a line like Kafka's, or as JSON.

For example, an entry of an offset index is the line `offset: 8080 position: 5000`, or the JSON object
`{"type": "index_entry", "offset": 8080, "position": 5000}`.

The method `line` of an entry returns the line that DumpLogSegments of Kafka 4.3 prints. The method `fields` returns the
same content for JSON. The command `hmb dump-log` and the tests use these methods.

The key and the value of a record are bytes. As in Kafka, a line shows them as UTF-8 text, with replacement
characters for invalid bytes. The JSON form loses no byte: if a key or a value is not valid UTF-8, JSON contains
it as base64 text, in the field `key_base64` or `value_base64`.
"""

from __future__ import annotations

import base64
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

from hmb.protocol.errors import KafkaError
from hmb.records import (
    Batch,
    Codec,
    ControlType,
    EndTransactionMarker,
    Message,
    Record,
    RecordBatch,
    control_type,
    decode_marker,
)
from hmb.records.consumer_record import ConsumerRecord
from hmb.records.producer_numbers import increment_sequence


class View(Enum):
    """The forms in which a dump can show a file."""

    LINES = "lines"  # the lines of Kafka's DumpLogSegments
    HEX = "hex"  # each byte with its field
    TREE = "tree"  # a segment's batches and records, with their sizes


class Decoded(NamedTuple):
    """A record's key and value in a readable form: text or a JSON value. A missing key or value is None."""

    key: object
    value: object


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """The options of a dump. Some of them are options of Kafka's tool DumpLogSegments.

    The options `verify` and `view` exist only in HMB. With `verify`, the dump shows only damage and a summary.
    The option `view` selects how the dump shows a file, for example as lines or as a tree.
    """

    deep_iteration: bool = False  # whether to print the records of each batch, too
    print_data_log: bool = False  # whether to print records with keys and values; implies deep_iteration
    index_sanity_check: bool = False  # whether to check indexes only briefly, like a broker that starts
    verify: bool = False
    view: View = View.LINES
    # Before each batch of a log file, the dump calls this function with the file's path and the batch's position.
    progress: Callable[[Path, int], None] = lambda _path, _position: None
    decode: Callable[[Record], Decoded] | None = None  # decodes keys and values of internal topics

    @property
    def deep(self) -> bool:
        return self.deep_iteration or self.print_data_log or self.verify or self.decode is not None


@dataclass(frozen=True, slots=True)
class Entry(ABC):
    """One entry of a dump: it is printed as one line, or as one JSON object."""

    kind: ClassVar[str]  # the value of "type" in JSON

    @property
    def is_damage(self) -> bool:
        return False

    @abstractmethod
    def line(self) -> str:
        """Return the entry as one line of text."""

    def fields(self) -> dict[str, object]:
        return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class FileHeading(Entry):
    """The first entry for each file of a dump: a line with the path of the file."""

    kind: ClassVar[str] = "file"
    file: Path

    def line(self) -> str:
        return f"Dumping {self.file}"


@dataclass(frozen=True, slots=True)
class NoteEntry(Entry):
    """A remark about a file, usually the text that Kafka's tool DumpLogSegments prints."""

    kind: ClassVar[str] = "note"
    note: str

    def line(self) -> str:
        return self.note


@dataclass(frozen=True, slots=True)
class UnknownFileEntry(Entry):
    """A file that the dump did not read, because its name is not the name of a file of a log."""

    kind: ClassVar[str] = "unknown_file"
    file: Path

    def line(self) -> str:
        return f"Ignoring unknown file {self.file}"


@dataclass(frozen=True, slots=True)
class DamageEntry(Entry):
    """A report of damaged bytes at a position of a file."""

    kind: ClassVar[str] = "damage"
    file: Path
    position: int
    error: str

    @classmethod
    def of_crc(cls, file: Path, position: int, stored: object, computed: int) -> Self:
        """Return a report of a wrong CRC. The file contains the CRC `stored`, but its bytes have the CRC `computed`."""
        return cls(file, position, f"the stored CRC is {stored}, but the bytes have the CRC {computed}")

    @property
    def is_damage(self) -> bool:
        return True

    def line(self) -> str:
        return f"{self.file}: damaged at position {self.position}: {self.error}"


@dataclass(frozen=True, slots=True)
class VerifiedEntry(Entry):
    """A summary that `hmb dump-log --verify` prints for one file, or for all files together.

    A summary contains counts, for example of bytes, records and damaged places.
    """

    kind: ClassVar[str] = "verified"
    file: Path | None  # None if the entry contains the sums of all files
    files: int
    size: int
    batches: int
    records: int
    entries: int  # number of entries in files that are not logs
    damages: int

    def plus(self, other: VerifiedEntry) -> VerifiedEntry:
        """Return a result whose counts are the sums of the counts in this result and in `other`."""
        counts = ("files", "size", "batches", "records", "entries", "damages")
        return VerifiedEntry(None, *[getattr(self, name) + getattr(other, name) for name in counts])

    def line(self) -> str:
        what = self.file or f"{self.files} files"
        found = [
            counted(self.size, "byte"),
            *([counted(self.batches, "batch", "batches")] if self.batches else []),
            *([counted(self.records, "record")] if self.records else []),
            *([counted(self.entries, "entry", "entries")] if self.entries else []),
        ]
        verdict = f"damage: {self.damages}" if self.damages else "no damage"
        return f"{what}: {', '.join([*found, verdict])}"


@dataclass(frozen=True, slots=True)
class BatchEntry(Entry):
    """A record batch, or a message of the older formats."""

    kind: ClassVar[str] = "batch"
    position: int
    batch: Batch
    codec: Codec
    is_valid: bool

    def line(self) -> str:
        batch = self.batch
        head = _batch_line(batch) if isinstance(batch, RecordBatch) else f"offset: {batch.offset}"
        return (
            f"{head} position: {self.position} {batch.timestamp_type.label}: {batch.max_timestamp}"
            f" size: {batch.size} magic: {batch.magic} compresscodec: {self.codec.name.lower()}"
            f" crc: {batch.crc} isvalid: {_bool(self.is_valid)}"
        )

    def fields(self) -> dict[str, object]:
        batch = self.batch
        fields: dict[str, object] = {"position": self.position, "size": batch.size, "magic": batch.magic}
        if isinstance(batch, RecordBatch):
            fields |= {
                "base_offset": batch.base_offset,
                "last_offset": batch.last_offset,
                "count": batch.records_count,
                "base_sequence": batch.base_sequence,
                "last_sequence": batch.last_sequence,
                "producer_id": batch.producer_id,
                "producer_epoch": batch.producer_epoch,
                "partition_leader_epoch": batch.partition_leader_epoch,
                "is_transactional": batch.is_transactional,
                "is_control": batch.is_control,
                "delete_horizon_ms": batch.delete_horizon,
            }
        else:
            fields["offset"] = batch.offset
        return fields | {
            "timestamp_type": batch.timestamp_type.label,
            "max_timestamp": batch.max_timestamp,
            "codec": self.codec.name.lower(),
            "crc": batch.crc,
            "is_valid": self.is_valid,
        }


def _batch_line(batch: RecordBatch) -> str:
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.records_count}"
        f" baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence}"
        f" producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch}"
        f" partitionLeaderEpoch: {batch.partition_leader_epoch}"
        f" isTransactional: {_bool(batch.is_transactional)} isControl: {_bool(batch.is_control)}"
        f" deleteHorizonMs: {optional_long(batch.delete_horizon)}"
    )


class InnerMessage(NamedTuple):
    """The stored CRC of one message (v0 or v1), and whether it is correct.

    If a message is compressed, it contains other messages, and each of these inner messages has its own CRC.
    """

    crc: int
    is_valid: bool


@dataclass(frozen=True, slots=True)
class RecordEntry(Entry):
    """A record of a dump. Its line follows the line of its batch."""

    kind: ClassVar[str] = "record"
    record: Record
    batch: Batch
    with_data: bool  # whether the line contains the key and the value
    message: InnerMessage | None = None
    decoded: Decoded | None = None

    def line(self) -> str:
        record = self.record
        head = (
            f"| offset: {record.offset} {record.timestamp_type.label}: {record.timestamp}"
            f" keySize: {optional_size(record.key)} valueSize: {optional_size(record.value)}"
        )
        if self.message is not None:
            head += f" isValid: {_bool(self.message.is_valid)} crc: {self.message.crc}"
        else:
            head += f" sequence: {self.sequence} headerKeys: [{','.join(name for name, _ in record.headers)}]"
        if self.batch.is_control:
            return f"{head} {_control_line(record)}"
        if self.decoded is not None:
            shown = zip(("key", "payload"), self.decoded, strict=True)
            return head + "".join(f" {name}: {_as_text(value)}" for name, value in shown if value is not None)
        if self.with_data and record.key is not None:
            head += f" key: {record.key.decode(errors='replace')}"
        if self.with_data and record.value is not None:
            head += f" payload: {record.value.decode(errors='replace')}"
        return head

    def fields(self) -> dict[str, object]:
        record = self.record
        fields: dict[str, object] = {
            "offset": record.offset,
            "timestamp_type": record.timestamp_type.label,
            "timestamp": record.timestamp,
            "key_size": optional_size(record.key),
            "value_size": optional_size(record.value),
        }
        if self.message is not None:
            fields |= {"crc": self.message.crc, "is_valid": self.message.is_valid}
        else:
            fields["sequence"] = self.sequence
        if self.batch.is_control:
            return fields | _control_fields(record)
        if self.decoded is not None:
            return fields | self.decoded._asdict()
        if self.with_data:
            return fields | content_as_json(record)
        return fields | {"header_keys": [name for name, _ in record.headers]}

    @property
    def sequence(self) -> int:
        """The record's sequence number; -1 if its producer is not idempotent."""
        if isinstance(self.batch, Message) or self.batch.base_sequence < 0:
            return -1
        return increment_sequence(self.batch.base_sequence, self.record.offset - self.batch.base_offset)


def _as_text(value: object) -> str:
    """Return a string unchanged, and any other value as JSON.

    A control character becomes an escape with upper-case hex digits, as in Kafka.
    """
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub(r"\\(u00..|.)", lambda escape: "\\" + escape[1][0] + escape[1][1:].upper(), text)


def _control(record: Record) -> EndTransactionMarker | ControlType:
    with suppress(KafkaError):
        return decode_marker(record)
    with suppress(KafkaError):
        return control_type(record)
    return ControlType.UNKNOWN


def _control_line(record: Record) -> str:
    control = _control(record)
    if isinstance(control, EndTransactionMarker):
        return f"endTxnMarker: {control.control_type.name} coordinatorEpoch: {control.coordinator_epoch}"
    return f"controlType: {control.name}({control.value})"


def _control_fields(record: Record) -> dict[str, object]:
    control = _control(record)
    if isinstance(control, EndTransactionMarker):
        return {"control_type": control.control_type.name, "coordinator_epoch": control.coordinator_epoch}
    return {"control_type": control.name}


def content_as_json(record: Record | ConsumerRecord) -> dict[str, object]:
    """Return the key, the value and the headers of a record as fields of a JSON object."""
    headers = [{"key": name, **text_or_base64("value", value)} for name, value in record.headers]
    return {**text_or_base64("key", record.key), **text_or_base64("value", record.value), "headers": headers}


def text_or_base64(name: str, value: bytes | None) -> dict[str, object]:
    """Return `value` as a field of a JSON object.

    For the name "key", a value in UTF-8 becomes `{"key": "Seattle"}`, and None becomes `{"key": None}`. A value
    that is not UTF-8 becomes base64: `{"key_base64": "/w=="}`.
    """
    try:
        return {name: None if value is None else value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value or b"").decode()}


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number with its noun, for example "1 batch" or "2 batches"."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def optional_long(value: int | None) -> str:
    """Return the text that Java prints for an `OptionalLong`: `OptionalLong[7]`, or `OptionalLong.empty` for None."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _bool(value: bool) -> str:
    return "true" if value else "false"


def optional_size(data: bytes | None) -> int:
    """Return the length of `data` in bytes; -1 for None, as Kafka prints it."""
    return -1 if data is None else len(data)
