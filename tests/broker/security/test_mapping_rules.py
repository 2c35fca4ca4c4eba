"""Tests of the rules that turn the name in a certificate into the name of a principal."""

from __future__ import annotations

import pytest

from hmb.broker.security.mapping_rules import distinguished_name, parse_rules, principal_name

NAME = "CN=Alice,OU=Lab,O=Example,C=DE"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("", NAME),
        ("DEFAULT", NAME),
        ("RULE:^CN=(.*?),OU=.*$/$1/", "Alice"),
        ("RULE:^CN=(.*?),OU=.*$/$1/L", "alice"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U, DEFAULT", "ALICE@LAB"),
        ("RULE:^CN=Bob.*$/bob/,DEFAULT", NAME),
        ("RULE:^CN=Bob.*$/bob/", None),
        ("RULE:^.*O=Ex\\/ample.*$/x/,RULE:^(.*)$/$1/L", NAME.lower()),
    ],
)
def test_the_first_rule_that_matches_applies(rules: str, expected: str | None) -> None:
    assert principal_name(NAME, parse_rules(rules)) == expected


@pytest.mark.parametrize("rules", ["RULE:", "RULE:x/y", "alice", "DEFAULT,RULE:(/a/", "RULE:a/b/X", "RULE:(.*)/$2/"])
def test_an_invalid_rule_is_an_error(rules: str) -> None:
    with pytest.raises(ValueError, match=r"rule|pattern"):
        parse_rules(rules)


def test_a_name_is_written_as_kafka_writes_it() -> None:
    subject = ((("countryName", "DE"),), (("organizationName", "A, B"),), (("commonName", "x"),))
    assert distinguished_name({"subject": subject}) == "CN=x,O=A\\, B,C=DE"
