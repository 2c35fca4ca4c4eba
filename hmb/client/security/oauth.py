"""The client's side of OAUTHBEARER: the client gets a token from the source in its settings, and sends the token.

The token is a text that an identity provider has made and signed. A client gets the token from one of these places:
    sasl.oauthbearer.token=...                              the token itself, or a Python function that returns it
    sasl.oauthbearer.token.endpoint.url=file:///run/token   a file, which another program can replace
    sasl.oauthbearer.token.endpoint.url=https://...         the identity provider; the client sends its id and secret

The client gets a token before each login. A broker can limit how long a login is valid, for example until
the token expires. Before the login on a connection expires, the client opens a new connection and logs in
again.

Source: RFC 6749, chapter 4.4 (client credentials); RFC 7628; KIP-255, KIP-768, KIP-1139.
"""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from pathlib import Path

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.state_table import StateTable

TOKEN = "sasl.oauthbearer.token"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID, CLIENT_SECRET = (f"sasl.oauthbearer.client.credentials.client.{name}" for name in ("id", "secret"))
SCOPE = "sasl.oauthbearer.scope"
NAMES = [TOKEN, ENDPOINT, CLIENT_ID, CLIENT_SECRET, SCOPE]
SECRETS = {TOKEN, CLIENT_SECRET}
TIMEOUT = 10.0  # the time limit (s) for the answer of the identity provider
ALLOWED = re.compile(r"[-_.+~/=A-Za-z0-9]+")  # the characters of a token
TokenSource = Callable[[], str]  # returns a token


class OauthStep(Enum):
    """The message that the client expects next from the broker."""

    RESULT = "the broker's decision"
    REFUSAL = "the broker's error code, after the client has acknowledged the error"
    COMPLETE = "nothing, the login is complete"


class OauthReply(Enum):
    """The two kinds of reply that the broker can send after it has received the token."""

    ACCEPTED = "nothing: the token is valid"
    EXPLAINED = "a JSON text: the token is not valid"


OAUTH_CLIENT = StateTable(
    (OauthStep.RESULT, OauthReply.ACCEPTED, OauthStep.COMPLETE),
    (OauthStep.RESULT, OauthReply.EXPLAINED, OauthStep.REFUSAL),
)


class OauthLogin:
    """One login with OAUTHBEARER."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        self.state = OauthStep.RESULT

    @property
    def is_complete(self) -> bool:
        return self.state is OauthStep.COMPLETE

    def first(self) -> bytes:
        """Return the client's message with the token. Raises KafkaError if the client cannot get a token."""
        try:
            token = self._source().strip()
        except (OSError, ValueError) as error:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, f"cannot get a token: {error}") from error
        if not ALLOWED.fullmatch(token):
            why = "the token is empty, or contains a character that is not allowed in tokens"
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, why)
        return f"n,,\x01auth=Bearer {token}\x01\x01".encode()

    def receive(self, message: bytes) -> bytes:
        """Handle the broker's reply to the token, and return the client's next message.

        If the reply is empty, the token is valid and the login is complete. The client then sends nothing more, so the
        result is empty. Otherwise, the reply explains an error. The result is then the client's acknowledgement of this
        error.
        """
        reply = OauthReply.EXPLAINED if message else OauthReply.ACCEPTED
        self.state = OAUTH_CLIENT.next(self.state, reply)
        return b"\x01" if message else b""


def token_source(given: str | TokenSource | None, values: Mapping[str, str]) -> TokenSource | None:
    """Return a function that gets a token, or None if the settings contain no source of tokens.

    `given` is the value of the setting TOKEN.
    """
    if callable(given):
        return given
    if given:
        return lambda: given
    address = values.get(ENDPOINT, "")
    if not address:
        return None
    if address.startswith("file:"):
        return partial(Path(urllib.parse.unquote(urllib.parse.urlsplit(address).path)).read_text, "utf-8")
    return partial(request_token, address, values.get(CLIENT_ID, ""), values.get(CLIENT_SECRET, ""), values.get(SCOPE))


def request_token(address: str, client_id: str, secret: str, scope: str | None) -> str:
    """Ask an identity provider for a token. Raises OSError and ValueError."""
    import urllib.request  # Only this function needs the module, which takes long to import.

    form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    pair = f"{urllib.parse.quote_plus(client_id)}:{urllib.parse.quote_plus(secret)}"
    headers = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}", "Accept": "application/json"}
    request = urllib.request.Request(address, urllib.parse.urlencode(form).encode(), headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        answer = json.loads(response.read(1 << 20))
    if not isinstance(answer, dict) or not isinstance(token := answer.get("access_token"), str):
        raise ValueError("the answer of the identity provider contains no access_token")
    return token
