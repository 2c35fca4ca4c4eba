"""How errors leave the broker: as the error code of a part of a response, or by closing the connection."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Protocol

from hmb.protocol.errors import ErrorCode, KafkaError

LOGGER = logging.getLogger(__name__)


class CloseConnection(Exception):
    """Nothing more can be said on this connection."""


class Answer(Protocol):
    """A part of a response that has an error code; some have a message too."""

    error_code: int


class answering:
    """Turn what the domain raises into an answer's error code: KafkaError its own, OSError KAFKA_STORAGE_ERROR."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if isinstance(error, OSError):
            LOGGER.error("storage: %s", error)
            error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        if not isinstance(error, KafkaError):
            return False
        self._answer.error_code = error.code
        if hasattr(self._answer, "error_message"):
            self._answer.error_message = error.message
        return True
