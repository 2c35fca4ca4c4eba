"""Decides whether a client may use an HTTP server. The client must send a secret, or a user's name and password.

The server accepts three kinds of secrets, which are long random texts:

- The *token* is part of the link that the broker prints. It permits everything if the server requires no login.

- The *owner's token* is in a file in the data directory (ports.py). Only the owner of the directory can read
  this file. With the owner's token, commands such as `hmb state` may read everything without a login, even if
  users of the broker must log in.

- A *session id* belongs to a user who has logged in (logins.py). It gives access only to the data that this
  user may read.

If other computers can reach the server, a secret token is not enough. The server then requires a login, even
from the owner of the data directory.

The broker prints a link to its web page. If the broker has users, the page shows only a login form until the
reader logs in.

If the broker has users, a program can log in without cookies. Each request then contains two things:
- The parameter `?token=TOKEN` contains the token from the link that the broker prints.
- The header `Authorization: Basic` contains the name and the password of a user.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from http import HTTPStatus
from typing import NamedTuple

from hmb.monitoring.logins import OWNER, Logins, Reader
from hmb.monitoring.refusal import Refused

TOKEN_REFUSED = "the token is missing or wrong; the broker prints it at its start"
LOGIN_MISSING = "this broker has users: log in on its page, or send a user's name and password (Authorization: Basic)"


class Proofs(NamedTuple):
    """The parts of a request that can prove the sender's identity. A missing part is an empty string."""

    authorization: str  # the header Authorization
    token: str  # the token in the address of the request, or in a cookie
    session: str  # the session id in a cookie
    host: str  # the client's IP address

    @property
    def given_token(self) -> str:
        """The token in the header `Authorization: Bearer`, or else the token in the address or in a cookie."""
        kind, _, value = self.authorization.partition(" ")
        return value if kind == "Bearer" else self.token


class Admission:
    """Decides who may send requests to one HTTP server.

    `logins` checks the users' passwords and sessions. If `logins` is None, two rules apply:

    - If only this computer can reach the server, a request must contain one of the secrets `token` and
      `owner_token`.
    - If other computers can reach the server, the server refuses all requests.
    """

    def __init__(self, *, is_public: bool = False) -> None:
        self.token = secrets.token_urlsafe(24)
        self.owner_token = secrets.token_urlsafe(24)
        self.logins: Logins | None = None
        self._is_public = is_public

    @property
    def requires_login(self) -> bool:
        return self._is_public or (self.logins is not None and self.logins.is_required)

    def is_token(self, given: str) -> bool:
        """Return whether `given` is equal to `token` or to `owner_token`.

        The time of the comparison does not depend on the number of correct characters in `given`. Otherwise, an
        attacker could measure the time, and find out a token character by character.
        """
        return is_equal(given, self.token) | is_equal(given, self.owner_token)

    def reader(self, proofs: Proofs) -> Reader:
        """Return the sender of a request, with the sender's rights.

        Raises Refused if the token or the login is missing or wrong.
        """
        if not self.requires_login:
            if not self.is_token(proofs.given_token):
                raise Refused(HTTPStatus.UNAUTHORIZED, TOKEN_REFUSED)
            return OWNER
        if not self._is_public and is_equal(proofs.given_token, self.owner_token):
            return OWNER
        if (reader := self.session_reader(proofs)) is not None:
            return reader
        if not self.is_token(proofs.token):
            raise Refused(HTTPStatus.UNAUTHORIZED, TOKEN_REFUSED)
        name, password = _basic(proofs.authorization)
        if self.logins is None or not name:
            raise Refused(HTTPStatus.UNAUTHORIZED, LOGIN_MISSING)
        return self.logins.reader_of_password(name, password, proofs.host)

    def still_admits(self, proofs: Proofs, reader: Reader) -> bool:
        """Return whether the reader of a stream still has access. If not, the server ends the stream.

        How long a reader keeps access depends on what the reader has sent:

        - a session id: until the session ends
        - a name and a password (header `Authorization: Basic`): until the stream ends
        - the token from the link that the broker prints: until somebody creates the broker's first user
        - the owner's token from a file in the data directory: without a limit
        """
        if reader.user is None:
            return not self.requires_login or is_equal(proofs.given_token, self.owner_token)
        return not proofs.session or self.session_reader(proofs) == reader

    def session_reader(self, proofs: Proofs) -> Reader | None:
        """Return the user whose session id is in the request's cookie, or None."""
        return None if self.logins is None else self.logins.reader_of_session(proofs.session, proofs.host)


def is_equal(given: str, token: str) -> bool:
    """Return whether `given` is equal to `token`.

    The comparison takes the same time, however many characters of `given` are correct. An attacker who measures
    this time therefore cannot find the token character by character.
    """
    return hmac.compare_digest(given.encode(), token.encode())


def _basic(authorization: str) -> tuple[str, str]:
    """Return the name and password, or two empty strings if `authorization` is not a valid `Basic` header."""
    kind, _, value = authorization.partition(" ")
    if kind != "Basic":
        return "", ""
    try:
        name, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:  # The value is not base64, or its bytes are not UTF-8.
        return "", ""
    return name, password
