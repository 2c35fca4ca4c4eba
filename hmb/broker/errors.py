"""The two ways in which a handler reports an error: an error code in the response, or a closed connection."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from hmb.protocol.errors import ErrorCode, KafkaError

LOGGER = logging.getLogger(__name__)
# These errors mean that a coordinator is not ready. Clients expect them only in a coordinator's responses. For example,
# if a Produce response contains such an error, an old producer possibly gives up.
COORDINATOR_ERRORS = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)


class CloseConnection(Exception):
    """An error after which the broker closes the connection."""


class PartialResponse(Protocol):
    """A part of a response that has a field for an error code, and possibly a field for a message."""

    error_code: int


class error_code_in:
    """A context manager. It catches an error in its `with` block and puts the error's code into a part of a response.

    A KafkaError contains its error code. The code for an OSError is KAFKA_STORAGE_ERROR. The context manager does not
    catch other errors.
    """

    def __init__(self, response: PartialResponse) -> None:
        self._response = response

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is None or not isinstance(error, KafkaError | OSError):
            return False
        put_error(self._response, error)
        return True


def put_error(response: PartialResponse, error: KafkaError | OSError | None) -> None:
    """Put the code and the message of `error` into a part of a response. If `error` is None, change nothing.

    The code for an OSError is KAFKA_STORAGE_ERROR.
    """
    if error is None:
        return
    error = _as_kafka_error(error)
    response.error_code = error.code
    if hasattr(response, "error_message"):
        response.error_message = error.message


def outcome_of(action: Callable[[], None]) -> KafkaError | None:
    """Call `action`. Return the error that it raises, or None if it raises no error.

    A KafkaError is returned unchanged. For an OSError, return a KafkaError with the code KAFKA_STORAGE_ERROR. Other
    exceptions are not caught.
    """
    try:
        action()
    except (KafkaError, OSError) as error:
        return _as_kafka_error(error)
    return None


def _as_kafka_error(error: KafkaError | OSError) -> KafkaError:
    if isinstance(error, KafkaError):
        return error
    LOGGER.error("storage: %s", error)
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
