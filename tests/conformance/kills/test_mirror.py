"""Kills brokers and mirrors a few times. `mirror.py --kills 20` is a longer run of this test, with Kafka 4.3.0."""

from __future__ import annotations

import random

import pytest

from hmb.bench import peers
from tests.conformance.kills.mirror import run


@pytest.mark.external
@pytest.mark.slow
@pytest.mark.parametrize("transactional", [False, True])
def test_a_copy_has_all_records_after_kills(transactional: bool) -> None:
    brokers: list[peers.Peer] = [peers.Hmb(), peers.Hmb()]
    assert run(brokers, 2, 2_000, transactional=transactional, chance=random.Random(23)) == 0
