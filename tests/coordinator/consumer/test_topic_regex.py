"""Tests of regular expressions over topic names."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.coordinator.consumer.topic_regex import InvalidRegex, TopicRegex
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
def test_matches_are_the_same_as_with_pythons_re(regex: str, names: list[str]) -> None:
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
        ("(?<!a)", "invalid or unsupported Perl syntax"),
        ("a{2000}", "invalid repeat count"),
        ("a{3,2}", "invalid repeat count"),
        ("[b-a]", "invalid character class range"),
        ("(?P<>a)", "invalid named capture"),
        ("a{1000}{1000}", "invalid nested repetition operator"),
        ("(a{1000}){1000}", "invalid repeat count"),
        ("(((){1000}){1000}){1000}", "invalid repeat count"),
        ("(?:[a-z0-9]{900}[^a]{900}x{900}){1}" * 60, "expression too large"),
        ("\ud800", "invalid UTF-8"),
    ],
)
def test_invalid_expressions(regex: str, why: str) -> None:
    with pytest.raises(InvalidRegex) as refused:
        TopicRegex(regex)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert why in refused.value.message


@pytest.mark.parametrize("regex", ["(a+)+b", "(a|aa)+b", "(.*){20}x", "((a*)*)*c", "(a?){200}a{200}"])
def test_no_expression_takes_exponential_time(regex: str) -> None:
    """No regular expression takes exponential time.

    For one of the tested expressions, Python's `re` would need 2^249 steps.
    """
    began = time.process_time()
    TopicRegex(regex).matches("a" * 249)
    assert time.process_time() - began < 5


def test_a_broker_without_expressions_does_not_import_re2() -> None:
    program = (
        "import sys, tempfile, hmb, hmb.cli.main\n"
        "with tempfile.TemporaryDirectory() as folder, hmb.Broker(folder): print('re2' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert printed.stdout.strip() == "False"


def test_the_package_keeps_no_automaton_of_a_long_expression() -> None:
    """A TopicRegex leaves nothing in the cache of `re2.compile`.

    Otherwise, this cache could store 128 compiled expressions of up to one megabyte each.
    """
    import re2

    TopicRegex("a" * 1000)
    assert re2._Regexp._make.cache_info().currsize == 0
