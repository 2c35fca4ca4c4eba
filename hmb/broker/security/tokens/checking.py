"""Checks tokens: JSON Web Tokens (JWT), which the package PyJWT decodes and verifies.

A signed token has three parts, separated by dots. Each part is base64 text:
    header      {"alg": "RS256", "kid": "key-1"}               the algorithm of the signature, and the id of the key
    claims      {"sub": "alice", "exp": 1790000000, ...}       the name of the client, and when the token expires
    signature   the identity provider's signature of the two other parts

A token names its own algorithm, but an attacker can write any algorithm into a token. So the broker accepts only
algorithms that verify a signature with a public key (`ALGORITHMS`). If the broker also accepted the algorithm `none`,
anybody could make tokens.

The broker does not accept the algorithm HS256, which signs and verifies with the same key. The broker has only
the identity provider's public key. Everybody knows this key, so with HS256, anybody could sign a valid token.

An *unsecured* token has no signature, and its `alg` is `none`. Kafka offers unsecured tokens for tests. HMB
accepts them only if the setting `sasl.server.callback.handler.class` names Kafka's handler for unsecured
tokens (oauth_settings.py).

Source: RFC 7515, RFC 7519, RFC 8725.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jwt

from hmb.broker.security.tokens.oauthbearer import Token, TokenError
from hmb.broker.security.tokens.public_keys import PublicKeys

# The errors that a malformed token can cause. Deeply nested JSON causes a RecursionError. An infinite expiry time
# causes an OverflowError.
MALFORMED = (jwt.PyJWTError, ValueError, RecursionError, OverflowError)
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]


@dataclass(frozen=True)
class ExpectedClaims:
    """The claims that the broker requires. `clock_skew` is the tolerated difference between the clocks, in seconds."""

    audiences: Sequence[str]
    issuer: str | None
    name_claim: str
    clock_skew: float


class SignedTokens:
    """Checks signed tokens with the public keys of an identity provider."""

    def __init__(self, keys: PublicKeys, expected: ExpectedClaims) -> None:
        self._keys, self._expected = keys, expected

    def check(self, text: str) -> Token:
        """Verify the signature and the claims of a token. Raises TokenError."""
        try:
            key = self._keys.find(jwt.get_unverified_header(text).get("kid"))
            claims = jwt.decode(text, key, algorithms=ALGORITHMS, **_options(self._expected))
        except MALFORMED as error:
            raise TokenError(f"the token is not valid: {error}") from None
        return _token(claims, self._expected)


def check_unsecured(expected: ExpectedClaims, text: str) -> Token:
    """Check the claims of a token that has no signature. Raises TokenError."""
    try:
        if jwt.get_unverified_header(text).get("alg") != "none" or not text.endswith("."):
            raise TokenError('the settings require a token without a signature, so "alg" in its header must be "none"')
        options = _options(expected)
        options["options"] |= {"verify_signature": False, **dict.fromkeys(CLAIM_CHECKS, True)}
        if not expected.audiences:
            options["options"]["verify_aud"] = False
        claims = jwt.decode(text, algorithms=["none"], **options)
    except MALFORMED as error:
        raise TokenError(f"the token is not valid: {error}") from None
    return _token(claims, expected)


CLAIM_CHECKS = ("verify_exp", "verify_nbf", "verify_iat", "verify_aud", "verify_iss")


def _options(expected: ExpectedClaims) -> dict[str, Any]:
    """Return the arguments of `jwt.decode` for the expected claims."""
    return {
        "audience": list(expected.audiences) or None,
        "issuer": expected.issuer,
        "leeway": expected.clock_skew,
        "options": {"require": ["exp", expected.name_claim], "verify_aud": bool(expected.audiences)},
    }


def _token(claims: dict[str, Any], expected: ExpectedClaims) -> Token:
    user = claims[expected.name_claim]
    if not isinstance(user, str) or not user:
        raise TokenError(f"the claim {expected.name_claim} is not a name")
    return Token(user, max(0.0, float(claims["exp"]) - time.time()))
