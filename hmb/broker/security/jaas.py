r"""Parses JAAS lines in `server.properties`. A JAAS line can list users for a mechanism of SASL, for example for PLAIN.

JAAS is Java's framework for logins. A line names a Java class, and then options:
    org.apache.kafka.common.security.plain.PlainLoginModule required \
        user_alice="alice-secret" user_bob="bob-secret";

An option `user_NAME` adds a user of the mechanism PLAIN. NAME is the user's name, and the value of the option
is the user's password. In Kafka, a broker uses the options `username` and `password` to log in to other
brokers. HMB ignores these two options, because a cluster of HMB has only one broker.

A JAAS line does not contain the users of SCRAM, because the broker stores their credentials (users.py). A line for
OAUTHBEARER needs no options, because the tokens contain the names of the users.

In Kafka, an administrator can make a broker reject some tokens of OAUTHBEARER. The options for this have names
that begin with `unsecuredValidator`. HMB does not support these options. If HMB ignored them, it would accept
tokens that the administrator wants to reject. So HMB does not start if a JAAS line contains such an option.

HMB's setting `sasl.plain.users` is shorter than a JAAS line. The setting lists the user names and the passwords for
PLAIN:
    sasl.plain.users=alice:alice-secret,bob:bob-secret
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hmb.defaults import SCRAM_NAMES
from hmb.security.protocols import OAUTH_MECHANISM, PLAIN_MECHANISM

MODULES = {
    PLAIN_MECHANISM: "org.apache.kafka.common.security.plain.PlainLoginModule",
    **dict.fromkeys(SCRAM_NAMES, "org.apache.kafka.common.security.scram.ScramLoginModule"),
    OAUTH_MECHANISM: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
OPTION = re.compile(r"""\s*([\w.-]+)\s*=\s*("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^\s;"']+)""")
LINE = re.compile(r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)(?P<options>.*?);\s*", re.DOTALL)
USER_OPTION = "user_"


class JaasError(ValueError):
    """A JAAS line is malformed. The message contains no secret."""


def parse_jaas(line: str, mechanism: str) -> dict[str, str]:
    """Return the options in a JAAS line for a mechanism. Raises JaasError."""
    match = LINE.fullmatch(line)
    if match is None:
        raise JaasError("the line must have the form: MODULE required NAME=\"VALUE\" ... ;")
    if match["module"] != MODULES[mechanism]:
        raise JaasError(f"the module for {mechanism} must be {MODULES[mechanism]}")
    options: dict[str, str] = {}
    position, text = 0, match["options"]
    while text[position:].strip():
        option = OPTION.match(text, position)
        if option is None:
            raise JaasError(f"option {len(options) + 1} must have the form NAME=\"VALUE\"")
        options[option[1]] = _unquoted(option[2])
        position = option.end()
    return options


def check_oauth(options: Mapping[str, str]) -> None:
    """Raise JaasError if a JAAS line for OAUTHBEARER contains an option `unsecuredValidator...`.

    With these options, an administrator can make a Kafka broker reject some tokens. HMB does not support these
    options. If HMB ignored them, it would accept tokens that the administrator wants to reject.
    """
    for name in options:
        if name.startswith("unsecuredValidator"):
            raise JaasError(f"HMB does not have the option {name}; use the settings sasl.oauthbearer.*")


def plain_users(options: Mapping[str, str]) -> dict[str, str]:
    """Return the users of the mechanism PLAIN, with their passwords, from the options of a JAAS line."""
    return {name.removeprefix(USER_OPTION): text for name, text in options.items() if name.startswith(USER_OPTION)}


def parse_users(text: str) -> dict[str, str]:
    """Return the users in the setting `sasl.plain.users`, with their passwords. Raises JaasError."""
    users = {}
    for number, part in enumerate(filter(None, (part.strip() for part in text.split(","))), 1):
        name, separator, password = part.partition(":")
        if not (name and separator and password):
            raise JaasError(f"user {number} must have the form NAME:PASSWORD")
        users[name] = password
    return users


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[:1] in ("'", '"') else text
