"""Error codes in responses as exceptions that name the place of the error.

A newer broker may send an error code that this client does not know. Such a code becomes UNKNOWN_SERVER_ERROR, and the
message contains its number.
"""

from __future__ import annotations

from typing import Any

from hmb.protocol.errors import ErrorCode, KafkaError

_CODES = {int(code): code for code in ErrorCode}


def answered_error(where: object, number: int, message: str | None = None) -> KafkaError:
    """Return the exception for an error code.

    `where` names the topic, partition or broker. `message` is the broker's own text, if the response has one.
    """
    code = _CODES.get(number)
    if code is None:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{where}: error {number}, which this client does not know")
    return KafkaError(code, f"{where}: {message or code.message}")


class DeserializationError(Exception):
    """A deserializer of the application has raised an exception for the key or the value of a record.

    `record` contains the bytes. The consumer's position stays at the record. To skip it, seek to the next offset.
    """

    def __init__(self, record: Any, field: str, why: Exception) -> None:
        self.record = record
        partition = f"{record.topic}-{record.partition}"
        super().__init__(
            f"{partition}, offset {record.offset}: the {field} cannot be deserialized: {type(why).__name__}: {why}; "
            f"to skip this record: seek(TopicPartition({record.topic!r}, {record.partition}), {record.offset + 1})"
        )
