"""Tests of the loop that repeats a call after a temporary error."""

from __future__ import annotations

import pytest

from hmb.client.connection import ConnectionFailed
from hmb.client.retries import is_retriable, with_retries
from hmb.protocol.errors import ErrorCode, KafkaError

LOST = ConnectionFailed("127.0.0.1", 1, "lost")
NO_LEADER = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
REFUSED = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class Attempts:
    """A call that raises the given errors, one at each attempt, and then returns 42.

    `waits` contains the errors after which the caller waited.
    """

    def __init__(self, *errors: ConnectionFailed | KafkaError) -> None:
        self.errors = list(errors)
        self.waits: list[Exception] = []

    def attempt(self) -> int:
        if self.errors:
            raise self.errors.pop(0)
        return 42

    def wait(self, error: ConnectionFailed | KafkaError) -> None:
        self.waits.append(error)


def retry_for(error: ConnectionFailed | KafkaError) -> float:
    return 60.0 if is_retriable(error) else 0.0


def test_temporary_errors_are_retried() -> None:
    attempts = Attempts(LOST, NO_LEADER)
    assert with_retries(attempts.attempt, retry_for, attempts.wait) == 42
    assert attempts.waits == [LOST, NO_LEADER]


def test_a_permanent_error_is_raised_at_once() -> None:
    attempts = Attempts(LOST, REFUSED)
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        with_retries(attempts.attempt, retry_for, attempts.wait)
    assert attempts.waits == [LOST]


def test_an_error_is_raised_after_its_time_limit() -> None:
    attempts = Attempts(NO_LEADER, LOST)
    with pytest.raises(ConnectionFailed, match="lost"):
        with_retries(attempts.attempt, lambda error: 60.0 if error is NO_LEADER else 0.0, attempts.wait)


def test_a_wait_may_end_the_retries() -> None:
    attempts = Attempts(LOST)
    with pytest.raises(ConnectionFailed, match="lost"):
        with_retries(attempts.attempt, retry_for, lambda error: True)
