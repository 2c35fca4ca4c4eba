"""Tests of the member epochs that a consumer group and a share group reject."""

from __future__ import annotations

import pytest

from hmb.coordinator.consumer.member import ConsumerMember
from hmb.coordinator.share.member import ShareMember
from hmb.protocol.enums import STATIC_LEAVE_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError


@pytest.mark.parametrize(("epoch", "relation"), [(6, "greater"), (3, "smaller")])
def test_the_error_names_the_kind_of_group_and_both_epochs(epoch: int, relation: str) -> None:
    with pytest.raises(KafkaError, match=f"consumer group member has a {relation} .*\\({epoch}\\).*\\(5\\)") as error:
        ConsumerMember("a", epoch=5, previous_epoch=4).check_epoch(epoch, frozenset())
    assert error.value.code == ErrorCode.FENCED_MEMBER_EPOCH
    with pytest.raises(KafkaError, match=f"share group member has a {relation} .*\\({epoch}\\).*\\(5\\)") as error:
        ShareMember("a", epoch=5, previous_epoch=4).check_epoch(epoch)
    assert error.value.code == ErrorCode.FENCED_MEMBER_EPOCH


def test_the_previous_epoch_is_accepted_until_a_static_member_leaves() -> None:
    member = ConsumerMember("a", instance_id="i", epoch=5, previous_epoch=4)
    member.check_epoch(4, frozenset())
    left = member.temporarily_left()
    assert left.epoch == STATIC_LEAVE_EPOCH
    with pytest.raises(KafkaError, match="greater member epoch"):
        left.check_epoch(4, frozenset())
