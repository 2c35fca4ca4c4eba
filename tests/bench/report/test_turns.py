"""Turns are fair, and what is told of their figures is the median with its spread."""

from __future__ import annotations

from hmb.bench.report.turns import Spread, in_turns


def test_each_turn_has_everybody_and_begins_with_another() -> None:
    turns = list(in_turns("abc", 4))
    by_turn = ["".join(who for turn, who in turns if turn == number) for number in range(4)]
    assert by_turn == ["abc", "bca", "cab", "abc"]


def test_a_spread_is_told_as_its_median_with_least_and_most() -> None:
    assert str(Spread((1.0, 3.0, 2.0))) == "2.00 (1.00 .. 3.00)"
    assert str(Spread((1_000.0, 3_000.0))) == "2,000 (1,000 .. 3,000)"
