"""SCRAM: a client proves that it knows a password, without sending the password.

*The problem.* With the mechanism PLAIN, the client sends its password to the broker. If the broker stores the
passwords, a thief who copies its data has all passwords. With SCRAM, the broker stores other values, which are
computed from the passwords. A thief needs a very long time to compute a password from these values. During a
login, the client proves that it knows the password. The broker proves that it has the stored values of this
user.

*The values.* The *salt* is a sequence of random bytes. The slow function PBKDF2 computes the *salted password* from the
password and the salt. It runs a hash function many times (the *iterations*), so a thief can try only a few passwords
per second. The other values are computed from the salted password. H is the hash function, and HMAC is a hash function
with a key:
    salted password = PBKDF2(password, salt, iterations)
    client key      = HMAC(salted password, "Client Key")
    stored key      = H(client key)                            the broker stores it
    server key      = HMAC(salted password, "Server Key")      the broker stores it

*The exchange.* In each login, the client and the broker send four messages. Both sides send a *nonce*, a new
random text. The client computes a *proof* from its password and both nonces. A thief cannot use a recorded
proof for another login, because the broker sends a different nonce in each login.

The next lines show the four messages when the user `alice` logs in. A later paragraph explains `n,,` and
`c=biws`. The right column contains the names of the messages in RFC 5802, which calls the broker the server:
    client  n,,n=alice,r=<client nonce>                                    client first
    broker  r=<client nonce><broker nonce>,s=<salt>,i=4096                 server first
    client  c=biws,r=<client nonce><broker nonce>,p=<proof>                client final
    broker  v=<signature>                                                  server final

In the messages of a login, the field `r` contains the nonces, `s` the salt, and `i` the number of iterations.
The field `p` contains the client's proof, and `v` the broker's signature.

Both sides compute the mask `HMAC(stored key, all messages)`. The text `all messages` contains this login's
messages, but not the proof. The client sends the proof `client key XOR mask`. The broker computes
`proof XOR mask`, which is the client key. If the hash of the client key is equal to the stored key, the
client knows the password.

The broker's signature is `HMAC(server key, all messages)`. It proves to the client that the broker knows the server key
of this user.

The client's first message begins with `n,,`. The letter `n` means that the client does not use *channel
binding*. With channel binding, a login would be valid only in one TLS connection. Between the two commas, a
client could write the name of another user for whom it wants to act. The text `biws` in the client's last
message is `n,,` in base64. RFC 5802 explains all letters in the messages.

Source: RFC 5802 (SCRAM), RFC 7677 (SCRAM-SHA-256), KIP-84.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from enum import IntEnum

from hmb.defaults import SCRAM_ITERATIONS, SCRAM_NAMES

MIN_ITERATIONS, MAX_ITERATIONS = SCRAM_ITERATIONS  # the limits of Kafka's brokers
DEFAULT_ITERATIONS = MIN_ITERATIONS
SALT_SIZE = 24  # bytes
NONCE_SIZE = 24  # random bytes; the nonce is their base64 text
TEXT, BASE64 = r"[!-+\--~]+", "[A-Za-z0-9+/=]+"  # TEXT: printable characters without the comma
CLIENT_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<acts_as>[^,]*))?,)(?P<bare>n=(?P<name>[^,]+),r=(?P<nonce>{TEXT})(?:,(?P<extensions>.*))?)"
)
# To log in with a delegation token (KIP-48), a client adds this extension to its first message. The name in the message
# is then the id of the token.
TOKEN_EXTENSION = "tokenauth=true"
SERVER_FIRST = re.compile(rf"r=(?P<nonce>{TEXT}),s=(?P<salt>{BASE64}),i=(?P<iterations>\d{{1,9}})(?:,.*)?")
CLIENT_FINAL = re.compile(rf"(?P<bare>c=(?P<channel>{BASE64}),r=(?P<nonce>{TEXT})(?:,[^,]*)*),p=(?P<proof>{BASE64})")
SERVER_FINAL = re.compile(rf"(?:v=(?P<signature>{BASE64})|e=(?P<error>[^,]+))(?:,.*)?")


class ScramError(ValueError):
    """The error for a malformed SCRAM message, or for a client or a broker whose proof is wrong."""


class ScramMechanism(IntEnum):
    """The two SCRAM mechanisms, with the numbers that Kafka's messages use for them."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        """The name in a SaslHandshake request, such as `SCRAM-SHA-256`."""
        return SCRAM_NAMES[self - 1]

    @property
    def hash_name(self) -> str:
        """The name of the hash function in Python's library."""
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"


SCRAM_MECHANISMS = dict(zip(SCRAM_NAMES, ScramMechanism, strict=True))


@dataclass(frozen=True)
class ScramCredential:
    """The values that a broker stores instead of the password of one user. `repr` hides all secrets."""

    salt: bytes = field(repr=False)
    iterations: int
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)


def new_salt() -> bytes:
    return secrets.token_bytes(SALT_SIZE)


def new_nonce() -> str:
    return base64.b64encode(secrets.token_bytes(NONCE_SIZE)).decode()


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Compute the salted password. With 4,096 iterations, this takes about 2 ms."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def credential_of(mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """Compute the credential that a broker stores for a user, from the user's salted password."""
    stored_key = _hash(mechanism, _hmac(mechanism, salted, b"Client Key"))
    return ScramCredential(salt, iterations, stored_key, _hmac(mechanism, salted, b"Server Key"))


def client_proof(mechanism: ScramMechanism, salted: bytes, messages: str) -> bytes:
    """Return a client's proof. `messages` is the text of the login's messages, without the proof."""
    client_key = _hmac(mechanism, salted, b"Client Key")
    signature = _hmac(mechanism, _hash(mechanism, client_key), messages.encode())
    return bytes(key ^ byte for key, byte in zip(client_key, signature, strict=True))


def is_valid_proof(mechanism: ScramMechanism, credential: ScramCredential, messages: str, proof: bytes) -> bool:
    """Return whether a client's proof shows that the client knows the password.

    The function computes a key from the proof, and compares the hash of this key with the stored key. The
    comparison takes the same time for every wrong key. An attacker therefore cannot measure how many bytes were
    right.
    """
    signature = _hmac(mechanism, credential.stored_key, messages.encode())
    if len(proof) != len(signature):
        return False
    client_key = bytes(byte ^ other for byte, other in zip(proof, signature, strict=True))
    return hmac.compare_digest(_hash(mechanism, client_key), credential.stored_key)


def server_signature(mechanism: ScramMechanism, server_key: bytes, messages: str) -> bytes:
    return _hmac(mechanism, server_key, messages.encode())


def server_key_of(mechanism: ScramMechanism, salted: bytes) -> bytes:
    return _hmac(mechanism, salted, b"Server Key")


def matched(pattern: re.Pattern[str], message: bytes, name: str) -> re.Match[str]:
    """Match a message with `pattern`, and return the match. Raises ScramError if the message does not match."""
    try:
        match = pattern.fullmatch(message.decode())
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise ScramError(f"the {name} message is malformed")
    return match


def decoded(text: str) -> bytes:
    """Decode base64 text. Raises ScramError."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ScramError("a message contains text that is not base64") from None


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def escaped(name: str) -> str:
    """Return a user's name as SCRAM writes it: `=2C` stands for a comma, and `=3D` for an equals sign."""
    return name.replace("=", "=3D").replace(",", "=2C")


def unescaped(name: str) -> str:
    """Convert a name back from SCRAM's form: `a=2Cb` becomes `a,b`. Raises ScramError."""
    if re.search("=(?!2C|3D)", name):
        raise ScramError("the name of the user contains an equals sign that is not followed by 2C or 3D")
    return name.replace("=2C", ",").replace("=3D", "=")


def _hmac(mechanism: ScramMechanism, key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, mechanism.hash_name)


def _hash(mechanism: ScramMechanism, data: bytes) -> bytes:
    return hashlib.new(mechanism.hash_name, data).digest()
