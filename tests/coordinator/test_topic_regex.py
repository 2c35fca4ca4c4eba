"""Expressions over topic names, beside Python's own where both have the same syntax."""

from __future__ import annotations

import random
import re
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.coordinator.modern.topic_regex import InvalidRegex, TopicRegex
from hmb.protocol.errors import ErrorCode

NAMES = st.text("abAB01._-", max_size=6)
ATOMS = st.sampled_from(["a", "b", "1", r"\.", "-", ".", "[ab]", "[^a]", "[a-c1]", r"\d", r"\w", r"\D", "^", "$", "()"])


def combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    quantifiers = st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?"])
    return (
        st.lists(parts, max_size=4).map("".join)
        | st.tuples(parts, parts).map(lambda two: f"({two[0]}|{two[1]})")
        | st.tuples(parts, quantifiers).map(lambda two: f"(?:{two[0]}){two[1]}")
        | parts.map(lambda one: f"(?i:{one})")
    )


@given(st.recursive(ATOMS, combined, max_leaves=6), st.lists(NAMES, min_size=1, max_size=5))
def test_it_matches_what_pythons_own_matches(regex: str, names: list[str]) -> None:
    ours, pythons = TopicRegex(regex), re.compile(regex)
    for name in names:
        assert ours.matches(name) == bool(pythons.fullmatch(name)), (regex, name)


@pytest.mark.parametrize(
    ("regex", "matching", "others"),
    [
        ("orders-.*", ["orders-", "orders-eu"], ["orders", "my-orders-eu"]),
        (r"\Qa.b\E.*", ["a.b", "a.bc"], ["axb"]),
        ("(?i)events", ["EVENTS", "Events"], ["event"]),
        (r"\Alog\z", ["log"], ["logs"]),
        ("[[:upper:]]+[[:digit:]]", ["AB1"], ["ab1"]),
        ("[]a]x|[.-]", ["ax", "-", "."], ["x"]),
        ("(?P<kind>a|b)c", ["ac"], ["c"]),
        ("(?<1>a)", ["a"], ["c"]),
        ("", [""], ["a"]),
        ("a{,2}", [], ["a", "aa"]),
        ("é|a", ["a"], ["e"]),
    ],
)
def test_syntax(regex: str, matching: list[str], others: list[str]) -> None:
    compiled = TopicRegex(regex)
    assert [name for name in [*matching, *others] if compiled.matches(name)] == matching


@pytest.mark.parametrize(
    ("regex", "why"),
    [
        ("((", "missing closing )"),
        ("a)", "missing closing )"),
        ("[a", "missing closing ]"),
        ("*a", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a\\", "trailing backslash"),
        (r"(a)\1", "invalid escape sequence"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?<!a)", "invalid named capture"),
        ("a{2000}", "invalid repeat count"),
        ("a{3,2}", "invalid repeat count"),
        ("[b-a]", "invalid character class range"),
        ("(?P<>a)", "invalid named capture"),
        ("a{1000}{1000}", "invalid nested repetition operator"),
        ("(a{1000}){1000}", "expression too large"),
        ("(((){1000}){1000}){1000}", "expression too large"),
        ("(" * 1000 + ")" * 1000, "expression nests too deeply"),
    ],
)
def test_what_is_refused(regex: str, why: str) -> None:
    with pytest.raises(InvalidRegex) as refused:
        TopicRegex(regex)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert why in refused.value.message


@pytest.mark.parametrize("regex", ["(a+)+b", "(a|aa)+b", "(.*){20}x", "((a*)*)*c", "(a?){200}a{200}"])
def test_no_expression_takes_for_ever(regex: str) -> None:
    """In Python's own syntax the first takes 2^249 steps."""
    began = time.process_time()
    TopicRegex(regex).matches("a" * 249)
    assert time.process_time() - began < 5


def test_no_expression_remembers_more_than_a_few_megabytes() -> None:
    regex, dice = TopicRegex("[ab]*a[ab]{400}[ab]*"), random.Random(1)
    tracemalloc.start()
    try:
        for _ in range(60):
            regex.matches("".join(dice.choice("ab") for _ in range(249)))
        assert tracemalloc.get_traced_memory()[0] < 10_000_000
    finally:
        tracemalloc.stop()
