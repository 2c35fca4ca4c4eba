"""Tests of the decorator `cached_by_name`. Its cache stores no results for long names, so the cache stays small."""

from __future__ import annotations

from hmb.coordinator.known_names import LONGEST_NAME, cached_by_name


def test_long_names_are_computed_each_time_and_never_kept() -> None:
    """A value for a long name is computed each time and not cached.

    Before a bug was fixed, a cache for 10,000 entries stored 300 group ids of 1 MB each.
    """
    called: list[tuple[str, int]] = []

    @cached_by_name(2)
    def function(name: str, number: int) -> int:
        called.append((name, number))
        return number

    short, long = "s" * LONGEST_NAME, "s" * (LONGEST_NAME + 1)
    for name in (short, short, long, long):
        assert function(name, 1) == 1
    assert called == [(short, 1), (long, 1), (long, 1)]
    function("a", 1)
    function("b", 1)
    function(short, 1)
    assert len(called) == 6
