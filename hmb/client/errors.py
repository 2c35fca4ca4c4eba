"""The exceptions that the client library raises. An error code in a broker's response becomes a `KafkaError`.

`except hmb.HmbError` catches all exceptions in the next table. The indentation shows subclasses. An
application imports a class from `hmb`, or from the module in brackets:
    HmbError
      KafkaError            a broker refuses a request, or a record can never be sent; `code` is Kafka's error code
      ConnectionFailed      a broker cannot be reached or does not answer in time; a kind of Python's ConnectionError
        ClosedByBroker      the broker has closed the connection instead of sending a response
      DeserializationError  a function of the application cannot decode a record
      SettingError          a text is not a valid value of a setting; a kind of Python's ValueError
      BindError             `Broker.start` cannot listen on an address
      ConfigError           a setting of `Broker` is invalid
      DataDirectoryError    `Broker.start` cannot use its data directory
      BrokerNotRunning      a method of `Broker` needs a running broker; a kind of Python's RuntimeError
      FaultError            a test asks for a fault that is not possible; a kind of Python's ValueError
      NameNotFound          a test names an unknown API or error code; a kind of Python's ValueError
      RequestsMissing       a test waits for requests, and too few arrive in time; a kind of Python's AssertionError
      CertificateError      [hmb.security.certificates] certificates cannot be made
      TlsSettingError       [hmb.security.stores] a setting of TLS is wrong
      SecuritySettingError  [hmb.client.security.settings] a setting of TLS or SASL is wrong; a kind of ValueError
      MirrorError           [hmb.mirror.errors] a mirror cannot continue
        MirrorInterrupted   [hmb.mirror.errors] a mirror's session fails, and a new session begins

If a TLS setting is invalid, HMB usually raises a TlsSettingError internally. A client converts this error to
SecuritySettingError, or to SettingError if the settings come from a properties file. A broker converts the
error to ConfigError.

The table does not contain the subclasses of KafkaError, for example `TopicDeleted` (hmb/spark/offsets.py).

Some exceptions are not subclasses of HmbError. The exceptions of Hailstorm, HMB's stream processor, have the base
class `HailstormError` (hmb/hailstorm/errors.py). Some exceptions of HMB's connector for Spark, such as `LoadError`
and `DataLossError`, have no common base class.

Some mistakes of the caller raise Python's own exceptions. TypeError and ValueError mean that an argument is wrong.
RuntimeError means that the client is closed, or that two threads use the client at the same time. TimeoutError means
that a method did not finish within `timeout` seconds.

A newer broker may send an error code that this client does not know. The exception then has the code
UNKNOWN_SERVER_ERROR. The message of the exception contains the unknown error code.
"""

from __future__ import annotations

from typing import Any

from hmb.protocol.errors import ErrorCode, HmbError, KafkaError

_CODES = {int(code): code for code in ErrorCode}


def response_error(where: object, number: int, message: str | None = None) -> KafkaError:
    """Return the exception for an error code in a broker's response.

    `number` is the error code. `where` names the topic, partition or broker with the error. `message` is the broker's
    own error text, or None if the response has no text.
    """
    code = _CODES.get(number)
    if code is None:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{where}: error {number}, which this client does not know")
    return KafkaError(code, f"{where}: {message or code.message}")


class DeserializationError(HmbError):
    """The application's deserializer has raised an exception for the key or the value of a record.

    `record` contains the key and the value as bytes. The consumer's position stays at this record, so the next `poll`
    reads the record again and fails again. To skip the record, seek to the offset after the record.
    """

    def __init__(self, record: Any, field: str, why: Exception) -> None:
        self.record = record
        partition = f"{record.topic}-{record.partition}"
        super().__init__(
            f"{partition}, offset {record.offset}: the {field} cannot be deserialized: {type(why).__name__}: {why}; "
            f"to skip this record: seek(TopicPartition({record.topic!r}, {record.partition}), {record.offset + 1})"
        )
