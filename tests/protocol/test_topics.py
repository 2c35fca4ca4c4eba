"""Tests of the rules for topic names."""

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import check_topic_name


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "...", "-", "x" * 249])
def test_legal_names(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "a\n", "ä", "bad\udcff", "x" * 250])
def test_illegal_names(name: str) -> None:
    with pytest.raises(KafkaError, match="is not a topic name") as caught:
        check_topic_name(name)
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    caught.value.message.encode()  # The message can be encoded, even if the name cannot.
