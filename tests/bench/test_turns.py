"""Turns are fair, and ratios are those of neighbours."""

from __future__ import annotations

import pytest

from hmb.bench.turns import Spread, in_turns


def test_each_turn_has_everybody_and_begins_with_another() -> None:
    turns = list(in_turns("abc", 4))
    by_turn = ["".join(who for turn, who in turns if turn == number) for number in range(4)]
    assert by_turn == ["abc", "bca", "cab", "abc"]


def test_ratios_are_taken_turn_by_turn() -> None:
    ours, theirs = Spread((10.0, 1.0, 30.0)), Spread((10.0, 0.5, 10.0))
    assert ours.over(theirs) == Spread((1.0, 2.0, 3.0))
    assert str(ours.over(theirs)) == "2.00 (1.00 .. 3.00)"
    with pytest.raises(ValueError, match="shorter"):
        ours.over(Spread((1.0, 2.0)))
