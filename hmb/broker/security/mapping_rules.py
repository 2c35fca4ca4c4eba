"""Rules that turn the name in a client's certificate into the name of a principal (`ssl.principal.mapping.rules`).

A certificate contains a *distinguished name*, such as `CN=alice,OU=Lab,O=Example,C=DE`. Without rules, this
whole name is the name of the principal. A list of rules makes the name shorter. The broker applies the
first rule that matches the whole name:
    RULE:^CN=(.*?),OU=.*$/$1/     the part after CN=, here `alice`
    RULE:^.*$/$0/L                the whole name in lower case; U means upper case
    DEFAULT                       the whole name

Source: KIP-371.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

RULE = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)|DEFAULT")
# In a rule's replacement text, `$1` stands for the part of the name that the first group of the pattern has matched.
GROUP = re.compile(r"\$(\d)")
SHORT_NAMES = {
    "commonName": "CN",
    "organizationalUnitName": "OU",
    "organizationName": "O",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}


@dataclass(frozen=True)
class MappingRule:
    """One rule of the setting `ssl.principal.mapping.rules`. It turns the name in a certificate into a principal.

    A rule applies only to names that match its pattern. The rule DEFAULT has no pattern: it applies to all names, and
    does not change them.
    """

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""  # "L" changes the result to lower case, "U" to upper case; "" keeps the result unchanged

    def apply(self, name: str) -> str | None:
        """Return the principal's name, or None if the pattern does not match."""
        if self.pattern is None:
            return name
        if (match := self.pattern.fullmatch(name)) is None:
            return None
        result = GROUP.sub(lambda number: match[int(number[1])] or "", self.replacement)
        return {"L": result.lower(), "U": result.upper()}.get(self.case, result)


def parse_rules(text: str) -> list[MappingRule]:
    """Return the rules in a setting. Raises ValueError with the part of the text that is not a rule."""
    rules, position = [], 0
    while position < len(text.rstrip()):
        match = RULE.match(text, position)
        if match is None:
            rule = "RULE:pattern/replacement/[LU] or DEFAULT"
            raise ValueError(f"{text[position:]!r} does not begin with a rule; a rule is {rule}")
        if match[1] is None:
            rules.append(MappingRule())
        else:
            rules.append(_rule(match[1], match[2], match[3]))
        position = match.end()
        position += len(text[position:]) - len(text[position:].lstrip(", "))
    return rules or [MappingRule()]


def _rule(pattern: str, replacement: str, case: str) -> MappingRule:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a valid pattern: {error}") from None
    for number in GROUP.findall(replacement):
        if int(number) > compiled.groups:
            raise ValueError(f"{replacement!r} uses ${number}, but the pattern has {compiled.groups} groups")
    return MappingRule(compiled, replacement, case)


def principal_name(name: str, rules: Sequence[MappingRule]) -> str | None:
    """Return the name of the principal that the first matching rule makes from `name`, or None if no rule matches."""
    return next((result for rule in rules if (result := rule.apply(name)) is not None), None)


def distinguished_name(certificate: dict[str, Any]) -> str:
    """Return the name in a certificate as Kafka writes it (RFC 2253), for example `CN=alice,OU=Lab,C=DE`.

    The most specific part comes first. `certificate` is a result of `SSLSocket.getpeercert`.
    """
    parts = []
    for group in reversed(certificate.get("subject", ())):
        pairs = (f"{SHORT_NAMES.get(name, name)}={_escaped(value)}" for name, value in group)
        parts.append("+".join(pairs))
    return ",".join(parts)


def _escaped(value: str) -> str:
    return re.sub(r'([,+"\\<>;])', r"\\\1", value)
