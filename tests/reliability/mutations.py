"""Random changes to the bytes of a request. Broken or malicious clients send such requests."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

LENGTHS = (
    b"\x7f\xff\xff\xff",  # a length of 2 GB as int32
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",  # -1 as int32, which means null
    b"\x7f\xff",  # the length of the longest string as int16: 32,767 bytes
    b"\xff\xff\xff\xff\x0f",  # a length of 4 GB as unsigned varint
    b"\xff\xff\x07",  # 131,071 as unsigned varint
    b"\x00",
)


def replace_bytes(random: Random, data: bytes) -> bytes:
    start = random.randrange(len(data))
    new = random.randbytes(random.randint(1, 8))
    return data[:start] + new + data[start + len(new) :]


def insert_bytes(random: Random, data: bytes) -> bytes:
    start = random.randrange(len(data))
    return data[:start] + random.randbytes(random.randint(1, 8)) + data[start:]


def remove_bytes(random: Random, data: bytes) -> bytes:
    start = random.randrange(len(data))
    return data[:start] + data[start + random.randint(1, 8) :]


def cut(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data))]


def repeat(random: Random, data: bytes) -> bytes:
    start = random.randrange(len(data))
    piece = data[start : start + random.randint(1, 64)]
    return data[:start] + piece * random.choice((2, 10, 1000)) + data[start:]


def lie_about_length(random: Random, data: bytes) -> bytes:
    start = random.randrange(len(data))
    new = random.choice(LENGTHS)
    return data[:start] + new + data[start + len(new) :]


MUTATIONS: tuple[Callable[[Random, bytes], bytes], ...] = (
    replace_bytes,
    insert_bytes,
    remove_bytes,
    cut,
    repeat,
    lie_about_length,
)


def mutate(random: Random, data: bytes) -> bytes:
    """Return a copy of `data` with one to three random changes."""
    for _ in range(random.randint(1, 3)):
        if data:
            data = random.choice(MUTATIONS)(random, data)
    return data
