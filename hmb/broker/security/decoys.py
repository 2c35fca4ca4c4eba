"""Decoys: the credentials with which the broker answers logins of unknown users (scram.py).

The broker computes the salt of a decoy from the user's name and a secret key. So the same name always gets the same
salt. If the salt of a name changed between two logins, a client would know that the user does not exist.

A decoy is the invented credential of a user who does not exist. The salt of a decoy must look like the salts of real
users, because a client sees the salt during the login. The salt shows which program has created a user: a salt of HMB's
tools consists of random bytes, and a salt of Kafka's tools is a random number in base 36, such as `1x3kq...`. Assume
that Kafka's tools have created all real users. If the salt of a decoy consisted of random bytes, a client would know
that the decoy's user does not exist.

A decoy is the invented credential of a user who does not exist. A decoy has the *shape* of a credential that the broker
stores. The shape is the number of iterations, and the form and the length of the salt. If the stored credentials have
several shapes, the broker chooses one of them by the user's name. So the same name always gets the same shape.
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

MAX_SHAPES = 8  # limit for the shapes of invented credentials; only the most frequent shapes are used
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
NUMBER_BITS = 130  # the size of the random number from which Kafka's tools make a salt
NUMBER = re.compile(rb"[0-9a-z]{20,26}")


class CredentialShape(NamedTuple):
    """The parts of a credential that a client sees.

    If the salt is a number in base 36, `salt_size` is 0, because such salts have different lengths.
    """

    salt_size: int  # bytes
    iterations: int


OWN_SHAPE = CredentialShape(scram.SALT_SIZE, scram.DEFAULT_ITERATIONS)  # credentials that HMB itself makes


def shapes_of(credentials: Iterable[UserScramCredentialRecord]) -> dict[int, list[CredentialShape]]:
    """Return, for each mechanism, the MAX_SHAPES most frequent shapes of the credentials.

    A shape is the number of iterations, and the form and the length of the salt.
    """
    counts: dict[int, Counter[CredentialShape]] = {}
    for each in credentials:
        salt = bytes(each.salt)
        shape = CredentialShape(0 if NUMBER.fullmatch(salt) else len(salt), each.iterations)
        counts.setdefault(each.mechanism, Counter())[shape] += 1
    return {mechanism: [it for it, _ in found.most_common(MAX_SHAPES)] for mechanism, found in counts.items()}


def decoy(secret: bytes, mechanism: ScramMechanism, name: str, shapes: Sequence[CredentialShape]) -> ScramCredential:
    """Return a credential for which no password exists. The credential has one of the shapes in `shapes`.

    A shape is the number of iterations, and the form and the length of the salt. The same user name should get the same
    shape in each call. If the shape changed between two logins, a client would know that the user does not exist.
    `shapes` can change between two calls, because users are added or removed. If one shape is added or removed, the
    decoys of most names keep their shape.
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
