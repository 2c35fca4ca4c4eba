"""Invents *decoys*: false credentials that the broker uses when an unknown user logs in (scram.py).

During a login, the client sees the salt of the credential. The broker computes the salt of a decoy from the user's
name and a secret key, so the same name always gets the same salt. A real user also has the same salt in each login. If
the salt changed between two logins, a client would know that the user does not exist.

A client must also not recognize a decoy by the form of its salt. HMB's tools use random bytes as a salt. Kafka's
tools use a random number in base 36, such as `1x3kq...`. If Kafka's tools created all real users, a decoy's salt
must also be a number in base 36.

A decoy therefore copies the *shape* of a stored credential. The shape is the number of iterations and the kind
of salt: random bytes of a certain length, or a number in base 36.

If stored credentials have several shapes, a decoy gets one of these shapes. The name of the unknown user
determines the choice, so each login with this name gets the same shape.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hmb.broker.security.metadata_records import UserScramCredentialRecord
from hmb.security import scram
from hmb.security.scram import ScramCredential, ScramMechanism

MAX_SHAPES = 8  # For each mechanism, decoys get at most this number of shapes, the most frequent ones.
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
NUMBER_BITS = 130  # the size of the random number from which Kafka's tools make a salt
NUMBER = re.compile(rb"[0-9a-z]{20,26}")


class CredentialShape(NamedTuple):
    """The length of a credential's salt, and the number of iterations. A client sees both in a login.

    A `salt_size` of 0 means a salt from Kafka's tools. These salts are random numbers in base 36, so their lengths
    differ by chance.
    """

    salt_size: int  # bytes
    iterations: int


OWN_SHAPE = CredentialShape(scram.SALT_SIZE, scram.DEFAULT_ITERATIONS)  # credentials that HMB itself makes


def shapes_of(credentials: Iterable[UserScramCredentialRecord]) -> dict[int, list[CredentialShape]]:
    """Return the most frequent shapes of the credentials of each SCRAM mechanism, at most MAX_SHAPES each.

    The function assumes that salts of 20 to 26 digits and small letters come from Kafka's tools. All these salts get
    the `salt_size` 0, so that their different lengths do not create many shapes.
    """
    counts: dict[int, Counter[CredentialShape]] = {}
    for each in credentials:
        salt = bytes(each.salt)
        shape = CredentialShape(0 if NUMBER.fullmatch(salt) else len(salt), each.iterations)
        counts.setdefault(each.mechanism, Counter())[shape] += 1
    return {mechanism: [it for it, _ in found.most_common(MAX_SHAPES)] for mechanism, found in counts.items()}


def decoy(secret: bytes, mechanism: ScramMechanism, name: str, shapes: Sequence[CredentialShape]) -> ScramCredential:
    """Return an invented credential, a *decoy*, for a user who does not exist. No password matches it.

    During a login, a client sees the salt and the number of iterations. If these values changed between two logins
    with the same name, the client would know that the user does not exist.

    The *shape* of a credential is the length of its salt and its number of iterations. The function uses the user's
    name to select a shape from the list `shapes`. While the list stays the same, a name always gets the same shape.

    If a shape is removed from the list, only the names with this shape get another shape. If a shape is added, some
    names get the added shape. All other names keep their shape.
    """
    key = hmac.digest(secret, f"{mechanism}:{name}".encode(), "sha512")
    shape = max(shapes, key=lambda each: hmac.digest(key, repr(each).encode(), "sha256"))
    stream = hashlib.shake_256(key)
    if shape.salt_size:
        salt = stream.digest(shape.salt_size)
    else:
        salt = _in_base_36(int.from_bytes(stream.digest(NUMBER_BITS // 8 + 1)) % (1 << NUMBER_BITS))
    return ScramCredential(salt, shape.iterations, key[:32] if mechanism == 1 else key, key)


def _in_base_36(number: int) -> bytes:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = DIGITS[digit] + digits
    return digits.encode()
