"""Tests of error codes, and of the exceptions that contain them."""

from hmb.protocol.errors import ErrorCode, KafkaError


def test_codes_have_no_gaps() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 134))
    assert all(code.message.endswith(".") for code in ErrorCode)


def test_an_error_shows_code_and_message() -> None:
    error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert str(error) == "NOT_LEADER_OR_FOLLOWER (6): This broker does not lead (or does not hold) the partition."
    assert error.code.retriable
    assert str(KafkaError(ErrorCode.INVALID_CONFIG, "no such key")) == "INVALID_CONFIG (40): no such key"
    assert not ErrorCode.INVALID_CONFIG.retriable


def test_a_message_that_quotes_a_long_name_keeps_its_start_and_its_end() -> None:
    """A message that quotes a long name contains only the start and the end of this name.

    Before a bug was fixed, such a message had more than 32,767 bytes, so the response could not be encoded.
    """
    name = "\N{GRINNING FACE}" * 8_000
    error = KafkaError(ErrorCode.INVALID_CONFIG, f"first {name} last")
    assert error.message.startswith("first ") and error.message.endswith(" last")
    assert len(error.message.encode()) < 5_000
