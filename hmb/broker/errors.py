"""How a handler reports an error: as an error code in a part of the response, or by closing the connection."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from hmb.protocol.errors import ErrorCode, KafkaError

LOGGER = logging.getLogger(__name__)


class CloseConnection(Exception):
    """An error after which the broker closes the connection."""


class PartialResponse(Protocol):
    """A part of a response that has an error code, and perhaps a message."""

    error_code: int


class answering:
    """A context that catches an error and puts its code into a part of a response.

    A KafkaError has an error code. An OSError becomes KAFKA_STORAGE_ERROR.
    """

    def __init__(self, answer: PartialResponse) -> None:
        self._answer = answer

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, KafkaError | OSError):
            return False
        answer_with(self._answer, _as_kafka_error(error))
        return True


def answer_with(answer: PartialResponse, error: KafkaError | None) -> None:
    """Put an error into a part of a response. None changes nothing."""
    if error is None:
        return
    answer.error_code = error.code
    if hasattr(answer, "error_message"):
        answer.error_message = error.message


def outcome_of(action: Callable[[], None]) -> KafkaError | None:
    """Return the error that an action raises, or None if it succeeds."""
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
