"""Delegation tokens: a user gets a token from the broker, and gives it to programs that log in under the user's name.

A job with a thousand workers needs a thousand logins. The workers should not have the user's password, because the
password is valid for a long time and for everything. The user therefore creates a token, which expires soon. A worker
logs in with SCRAM, but uses the token's id as its name, and the token's HMAC as its password:
    token id   a random text, for example DZtEE2nVTMiQLPGn5wxjVw; it is not secret
    HMAC       HMAC-SHA-512(delegation.token.secret.key, token id); it is secret

The broker stores the id of each delegation token in a file, but not the token's password, the HMAC. A thief who
steals this file therefore cannot log in. When a worker logs in, the broker computes the HMAC from the token id
and the secret key. If the secret key changes, all existing tokens become invalid.

A delegation token has two times. At the *expiry time*, the token becomes invalid. Before this time, the owner of the
token or a *renewer* can set a later expiry time, as often as they want. No expiry time can be later than the *max
time*.

Source: KIP-48, KIP-373, KIP-900; `DelegationTokenControlManager` of Kafka.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hmb.broker.config.keys import ConfigError, Settings
from hmb.broker.config.security import TOKENS
from hmb.broker.security.metadata_records import DelegationTokenRecord
from hmb.broker.security.principals import USER
from hmb.broker.security.store import SecurityState, SecurityStore
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.uuids import encode_uuid

if TYPE_CHECKING:
    from hmb.broker.security.scram import TokenCredential
    from hmb.security.scram import ScramCredential, ScramMechanism

MAX_TOKENS = 10_000  # a broker stores at most this number of tokens
MAX_TOKENS_OF_REQUESTER = 1_000  # a broker stores at most this number of tokens that one user has created
MAX_RENEWERS = 100  # a token has at most this number of renewers
LONGEST_NAME = 1_000  # a principal has at most this number of characters
LONGEST_NAMES = 10_000  # all principals in a token together have at most this number of characters


KEYS: dict[str, Any] = {key.name: key for key in TOKENS}


class TokenSettings(Settings):
    """The settings of delegation tokens. Times are in ms. A broker without a secret key has no tokens."""

    secret_key: str | None = KEYS["delegation.token.secret.key"]
    max_lifetime: int = KEYS["delegation.token.max.lifetime.ms"]
    expiry_time: int = KEYS["delegation.token.expiry.time.ms"]
    check_interval: int = KEYS["delegation.token.expiry.check.interval.ms"]

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> TokenSettings:
        """Return the settings `delegation.token.*`. Raises ConfigError."""
        values: dict[str, Any] = {
            field: key.parse(properties[key.name]) for field, key in cls.declared.items() if key.name in properties
        }
        settings = cls(**values)
        if settings.secret_key and settings.expiry_time > settings.max_lifetime:
            problem = "the value must be at most delegation.token.max.lifetime.ms"
            raise ConfigError(problem, "delegation.token.expiry.time.ms", str(settings.expiry_time))
        return settings


class DelegationTokens:
    """The delegation tokens of a broker. Several threads can use this object at the same time."""

    def __init__(self, store: SecurityStore, settings: TokenSettings, now: Callable[[], int]) -> None:
        """`now` returns the time in ms."""
        self._store, self._settings, self._now = store, settings, now
        # This cache maps (mechanism, token id) to a credential. The method `find` adds the credential when a client
        # first uses the token to log in.
        self._credentials: dict[tuple[ScramMechanism, str], ScramCredential] = {}

    @property
    def check_interval(self) -> float:
        """The time in seconds between two removals of expired tokens."""
        return self._settings.check_interval / 1000

    def check_enabled(self) -> None:
        """Raise DELEGATION_TOKEN_AUTH_DISABLED if the broker has no secret key."""
        if not self._settings.secret_key:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)

    def create(
        self, owner: str, requester: str, renewers: Iterable[str], max_lifetime: int
    ) -> DelegationTokenRecord:
        """Store a new token on disk, and return it.

        The token expires at the latest `max_lifetime` ms from now. If `max_lifetime` is below 1 or above the longest
        lifetime that the broker allows, the method uses the longest allowed lifetime.

        Raises DELEGATION_TOKEN_AUTH_DISABLED, INVALID_PRINCIPAL_TYPE, INVALID_REQUEST and OSError.
        """
        self.check_enabled()
        allowed = list(dict.fromkeys(renewers))
        if any(not each.startswith(f"{USER}:") for each in (*allowed, owner)):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        lengths = [len(each) for each in (*allowed, owner)]
        if len(allowed) > MAX_RENEWERS or max(lengths) > LONGEST_NAME or sum(lengths) > LONGEST_NAMES:
            why = "the token has too many renewers, or the names of the owner and the renewers are too long"
            raise KafkaError(ErrorCode.INVALID_REQUEST, why)
        now, longest = self._now(), self._settings.max_lifetime
        max_time = now + (min(max_lifetime, longest) if max_lifetime > 0 else longest)
        token = DelegationTokenRecord(
            owner=owner,
            requester=requester,
            renewers=allowed,
            issue_timestamp=now,
            max_timestamp=max_time,
            expiration_timestamp=min(max_time, now + self._settings.expiry_time),
            token_id=encode_uuid(uuid.uuid4()),
        )

        def compute(state: SecurityState) -> SecurityState:
            if len(state.tokens) >= MAX_TOKENS:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"a broker has at most {MAX_TOKENS} delegation tokens")
            if sum(each.requester == requester for each in state.tokens.values()) >= MAX_TOKENS_OF_REQUESTER:
                why = f"{requester} has created {MAX_TOKENS_OF_REQUESTER} delegation tokens that have not expired"
                raise KafkaError(ErrorCode.INVALID_REQUEST, why)
            return replace(state, tokens={**state.tokens, token.token_id: token})

        self._store.change(compute)
        return token

    def hmac_of(self, token: DelegationTokenRecord) -> bytes:
        """Return the HMAC of a token, which is the password of the token."""
        import hmac  # This import loads OpenSSL, which takes 3 ms. Most brokers have no tokens.

        return hmac.digest((self._settings.secret_key or "").encode(), token.token_id.encode(), "sha512")

    def renew(self, given: bytes, principal: str, period: int) -> int:
        """Set the expiry time of a token to `period` ms from now, and return the new time.

        `given` is the token's HMAC. If `period` is below 1 or above the setting `delegation.token.expiry.time.ms`, the
        method uses this setting as the period. The new time is at most the token's max time. Raises KafkaError and
        OSError.
        """
        longest = self._settings.expiry_time
        lifetime = min(period, longest) if period > 0 else longest
        return self._move_expiry(given, principal, lifetime)

    def expire(self, given: bytes, principal: str, period: int) -> int:
        """Set the expiry time of a token to `period` ms from now, and return the new time.

        `given` is the token's HMAC. The new time is at most the token's max time. If `period` is negative, the method
        removes the token immediately and returns `period`, as Kafka does. Raises KafkaError and OSError.
        """
        if period >= 0:
            return self._move_expiry(given, principal, period)
        token = self._usable(given, principal)
        self._store.change(lambda state: _without(state, {token.token_id}))
        return period

    def _move_expiry(self, given: bytes, principal: str, lifetime: int) -> int:
        token = copy(self._usable(given, principal))
        token.expiration_timestamp = min(token.max_timestamp, self._now() + lifetime)

        def compute(state: SecurityState) -> SecurityState:
            if token.token_id not in state.tokens:  # Another client has removed the token.
                raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
            return replace(state, tokens={**state.tokens, token.token_id: token})

        self._store.change(compute)
        return token.expiration_timestamp

    def _usable(self, given: bytes, principal: str) -> DelegationTokenRecord:
        """Return the token whose HMAC is `given`. Check that `principal` is its owner or a renewer.

        Raises KafkaError if this check fails, if no token has this HMAC, if the token has expired, or if the broker has
        no secret key.
        """
        import hmac  # This import loads OpenSSL, which takes 3 ms. Most brokers have no tokens.

        self.check_enabled()
        found = None
        for token in self._store.state.tokens.values():
            if hmac.compare_digest(self.hmac_of(token), given):
                found = token
        if found is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        if found.expiration_timestamp < self._now():
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        if principal not in (found.owner, *found.renewers):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        return found

    def all(self) -> list[DelegationTokenRecord]:
        """Return all tokens in the order of their issue times. Raises DELEGATION_TOKEN_AUTH_DISABLED."""
        self.check_enabled()
        return sorted(self._store.state.tokens.values(), key=lambda token: (token.issue_timestamp, token.token_id))

    def find(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential:
        """Return the credential with which the broker checks a SCRAM login with a delegation token.

        If no valid token has the id `token_id`, return a decoy: an invented credential that makes every login fail. The
        login then fails in the same way as with a wrong password, so a client cannot find out which tokens exist.
        """
        # The imports in this function take 8 ms. Only a login with SCRAM needs them.
        from hmb.broker.security.decoys import OWN_SHAPE, decoy
        from hmb.broker.security.scram import TokenCredential
        from hmb.security import scram

        unknown = decoy(self._store.decoy_key, mechanism, token_id, [OWN_SHAPE])
        token = self._store.state.tokens.get(token_id)
        lifetime = 0.0 if token is None else (token.expiration_timestamp - self._now()) / 1000
        if token is None or lifetime <= 0 or not self._settings.secret_key:
            return TokenCredential(unknown, token_id, 0)
        credential = self._credentials.get((mechanism, token_id))
        if credential is None:
            # If no token has this id, the client sees the salt of the decoy `unknown`. A real token gets the same salt,
            # so the salt does not show whether the token exists.
            salt, password = unknown.salt, base64.b64encode(self.hmac_of(token)).decode()
            salted = scram.salted_password(mechanism, password, salt, unknown.iterations)
            credential = scram.credential_of(mechanism, salted, salt, unknown.iterations)
            credential = self._credentials.setdefault((mechanism, token_id), credential)
        return TokenCredential(credential, token.owner.removeprefix(f"{USER}:"), lifetime)

    def remove_expired(self) -> None:
        """Remove the tokens that have expired. Raises OSError."""
        now = self._now()
        expired = {token.token_id for token in self._store.state.tokens.values() if token.expiration_timestamp < now}
        if expired:
            self._store.change(lambda state: _without(state, expired))
        for key in [key for key in list(self._credentials) if key[1] not in self._store.state.tokens]:
            self._credentials.pop(key, None)


def no_tokens() -> DelegationTokens:
    """Return the `DelegationTokens` of a broker that has no tokens and refuses to create one.

    Without the setting `delegation.token.secret.key`, a broker cannot create tokens, because it computes the secret
    part of each token from this key.
    """
    return DelegationTokens(SecurityStore(), TokenSettings(), lambda: 0)


def token_owner(type: str | None, name: str | None, requester: str) -> str:
    """Return the owner of a new token: the owner in the request, or else `requester`, who sent the request."""
    return f"{type}:{name}" if name else requester


def may_renew_or_describe(token: DelegationTokenRecord, principal: str) -> bool:
    """Return whether a principal is the owner, the requester or a renewer of a token."""
    return principal in (token.owner, token.requester, *token.renewers)


def _without(state: SecurityState, token_ids: set[str]) -> SecurityState:
    return replace(state, tokens={name: token for name, token in state.tokens.items() if name not in token_ids})
