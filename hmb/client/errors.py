"""The exceptions that an application meets, and how an error code in a response becomes an exception.

All exceptions of HMB can be imported from `hmb`, and `except hmb.HmbError` catches all of them::

    HmbError
      KafkaError            a broker refuses a request, or a record can never be sent; `code` is Kafka's error code
      ConnectionFailed      a broker cannot be reached, or does not answer in time; also a ConnectionError of Python
        ClosedByBroker      the broker has closed the connection instead of sending a response
      DeserializationError  a function of the application cannot decode a record
      SettingError          a text is not a valid value of a setting; also a ValueError of Python
      BindError             `Broker.start` cannot listen on an address
      ConfigError           a setting of `Broker` is invalid

Python's own exceptions report mistakes of the caller: TypeError and ValueError for arguments, RuntimeError for a closed
client or a client that two threads use at once. TimeoutError means that a method's `timeout` has passed.

A newer broker may send an error code that this client does not know. Such a code becomes UNKNOWN_SERVER_ERROR, and the
message contains its number.
"""

from __future__ import annotations

from typing import Any

from hmb.protocol.errors import ErrorCode, HmbError, KafkaError

_CODES = {int(code): code for code in ErrorCode}


def answered_error(where: object, number: int, message: str | None = None) -> KafkaError:
    """Return the exception for an error code.

    `where` names the topic, partition or broker. `message` is the broker's own text, if the response has one.
    """
    code = _CODES.get(number)
    if code is None:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{where}: error {number}, which this client does not know")
    return KafkaError(code, f"{where}: {message or code.message}")


class DeserializationError(HmbError):
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
