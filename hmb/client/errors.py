"""A broker's answer to an error of our own: from the code on the wire to an exception that says where.

A code that this client does not know (a broker newer than it may send one) counts as UNKNOWN_SERVER_ERROR, with its
number in the message.
"""

from typing import Any

from hmb.protocol.errors import ErrorCode, KafkaError

_CODES = {int(code): code for code in ErrorCode}


def answered_error(where: object, number: int, message: str | None = None) -> KafkaError:
    """The error that a broker answered, for a topic or a partition; in its own words if it sent any."""
    code = _CODES.get(number)
    if code is None:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{where}: error {number}, which this client does not know")
    return KafkaError(code, f"{where}: {message or code.message}")


class DeserializationError(Exception):
    """A deserializer of the program's raised: which record it could not read, and where that is.

    The consumer's position stays at the record. `record` has its bytes; to go on without it, seek to the next offset.
    """

    def __init__(self, record: Any, what: str, why: Exception) -> None:
        self.record = record
        partition = f"{record.topic}-{record.partition}"
        super().__init__(
            f"{partition}, offset {record.offset}: the {what} cannot be deserialized: {type(why).__name__}: {why}; "
            f"to go on behind it: seek(TopicPartition({record.topic!r}, {record.partition}), {record.offset + 1})"
        )
