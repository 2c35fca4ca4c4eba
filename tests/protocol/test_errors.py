"""Error codes and the exceptions that carry them."""

from hmb.protocol.errors import ErrorCode, KafkaError


def test_codes_are_without_gaps() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 134))
    assert all(code.message.endswith(".") for code in ErrorCode)


def test_an_error_says_code_and_message() -> None:
    error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert str(error) == "NOT_LEADER_OR_FOLLOWER (6): This broker does not lead (or does not hold) the partition."
    assert error.code.retriable
    assert str(KafkaError(ErrorCode.INVALID_CONFIG, "no such key")) == "INVALID_CONFIG (40): no such key"
    assert not ErrorCode.INVALID_CONFIG.retriable
