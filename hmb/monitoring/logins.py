"""Checks the passwords of users who log in at the HTTP ports of a broker, and stores the sessions of these users.

The broker prints a link to its page. The link contains a random token. If the broker has no users, everybody
who has the link can read the page. If the broker has users, a reader must also log in as one of them. The
page then shows only what this user may read (rights.py).

A broker *has users* if a listener uses SASL, if a SCRAM credential exists, or if the broker checks ACLs.

For example, alice logs in on the page with her SASL password. She gets a cookie with a random session id. The
page then shows her everything that the principal User:alice may read.

A session ends in each of these cases:
- The user logs out.
- Somebody changes or removes the user's SCRAM password.
- The session is 12 hours old (SESSION).
- All users together have 100 newer sessions (MAX_SESSIONS).

A computer that has sent too many wrong passwords must wait before it can try another password
(hmb/broker/security/refused_logins.py).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from http import HTTPStatus
from typing import NamedTuple

from hmb.broker.lifecycle import BrokerServer
from hmb.broker.security import users
from hmb.broker.security.acls.authorizer import Access
from hmb.broker.security.metadata_records import UserScramCredentialRecord
from hmb.broker.security.principals import USER
from hmb.monitoring.refusal import Refused
from hmb.security.protocols import WRONG_PASSWORD
from hmb.security.scram import ScramMechanism, credential_of, salted_password

SESSION = 12 * 3600.0  # seconds
MAX_SESSIONS = 100
LONGEST_PASSWORD = 1000  # characters


class Reader(NamedTuple):
    """A user who sends requests to an HTTP port, and the rights of this user.

    - `user` is the user's name. It is None if the request needs no login.
    - `access` contains the user's rights. It is None if the user may read everything.
    """

    user: str | None = None
    access: Access | None = None


OWNER = Reader()


class UserSession(NamedTuple):
    """A user who has logged in. `credential` is the SCRAM credential of the password, or None for a PLAIN password."""

    user: str
    credential: UserScramCredentialRecord | None
    ends: float  # when the session ends (time.monotonic)


class Logins:
    """Checks the passwords of a broker's users, and keeps their sessions. Thread-safe."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker
        self._store = broker.context.security
        self._plain_users = {
            name: password for each in broker.security.values() for name, password in each.plain_users.items()
        }
        self._lock = threading.Lock()  # guards `_sessions`; a thread that holds this lock takes no other lock
        self._sessions: dict[str, UserSession] = {}  # random id of a session -> session, the oldest first

    @property
    def has_passwords(self) -> bool:
        """Whether at least one user can log in."""
        return bool(self._plain_users or self._store.state.credentials)

    @property
    def is_required(self) -> bool:
        """Whether users must log in before they can read the broker's state.

        Users must log in if the broker has a listener with SASL, a user with a password, or an authorizer (which checks
        ACLs).
        """
        has_sasl = any(each.protocol.has_sasl for each in self._broker.security.values())
        return has_sasl or self.has_passwords or self._broker.authorizer is not None

    def log_in(self, user: str, password: str, host: str) -> str:
        """Check the password, begin a session, and return the session's id. Raises Refused for a wrong password."""
        credential = self._checked(user, password, host)
        number = secrets.token_urlsafe(24)
        with self._lock:
            self._sessions[number] = UserSession(user, credential, time.monotonic() + SESSION)
            if len(self._sessions) > MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return number

    def log_out(self, number: str) -> None:
        with self._lock:
            self._sessions.pop(number, None)

    def reader_of_password(self, user: str, password: str, host: str) -> Reader:
        """Check the password, and return the user as a `Reader`. Raises Refused for a wrong password."""
        self._checked(user, password, host)
        return self._reader(user, host)

    def reader_of_session(self, number: str, host: str) -> Reader | None:
        """Return the user of the session with the id `number`, as a `Reader`, or None if the session has ended."""
        with self._lock:
            session = self._sessions.get(number)
        if session is None or session.ends < time.monotonic():
            return None
        credential = session.credential
        if credential is not None:
            stored = self._store.state.credentials.get((credential.mechanism, credential.name))
            if stored is not credential:  # Somebody has changed or removed the password.
                return None
        return self._reader(session.user, host)

    def _reader(self, user: str, host: str) -> Reader:
        authorizer = self._broker.authorizer
        access = None if authorizer is None else Access(authorizer, f"{USER}:{user}", host)
        return Reader(user, access)

    def _checked(self, user: str, password: str, host: str) -> UserScramCredentialRecord | None:
        """Check a user's password. Return the user's SCRAM credential, or None for a SASL/PLAIN password.

        Raises Refused if the password is wrong, or if the computer `host` has sent too many wrong passwords.
        """
        refused = self._broker.context.refused_logins
        if refused.is_blocked(host):
            why = "this computer has sent too many wrong passwords; wait a minute, and try again"
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, why)
        is_plain, credential = self._is_plain_password(user, password), self._scram_credential(user, password)
        if not is_plain and credential is None:
            refused.add(host, f"login of {user[:100]!r} at the page refused: {WRONG_PASSWORD}")
            raise Refused(HTTPStatus.UNAUTHORIZED, WRONG_PASSWORD)
        return None if is_plain else credential

    def _is_plain_password(self, user: str, password: str) -> bool:
        expected = self._plain_users.get(user)
        given = hashlib.sha256(password.encode()).digest()
        right = hashlib.sha256((expected or secrets.token_hex()).encode()).digest()
        return hmac.compare_digest(given, right) and expected is not None

    def _scram_credential(self, user: str, password: str) -> UserScramCredentialRecord | None:
        """Return the user's SCRAM credential if `password` is the right password, or else None.

        The check takes equally long for existing and for unknown users, so the time does not reveal whether a
        user exists.
        """
        found = None
        for mechanism in ScramMechanism:
            stored = users.find(self._store, mechanism, user)
            salted = salted_password(mechanism, password[:LONGEST_PASSWORD], stored.salt, stored.iterations)
            key = credential_of(mechanism, salted, stored.salt, stored.iterations).stored_key
            if hmac.compare_digest(key, stored.stored_key):
                found = self._store.state.credentials.get((mechanism, user))
        return found
