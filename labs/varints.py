"""Varints for both checks of lab 5. They do not use HMB's codec, so the checks also find a mistake in the codec."""

from __future__ import annotations


def zigzag_varint(number: int) -> bytes:
    """Return a number as a zigzag varint. Each byte contains 7 bits of the number, and the lowest 7 bits are first."""
    rest = number * 2 if number >= 0 else -number * 2 - 1
    encoded = []
    while rest >= 128:
        encoded.append(rest % 128 + 128)
        rest //= 128
    return bytes([*encoded, rest])
