"""Varints for both checks of lab 5. The code is independent of HMB's codec, so a mistake in the codec cannot hide."""

from __future__ import annotations


def zigzag_varint(number: int) -> bytes:
    """Return a number as a varint: in zigzag form, with 7 bits in each byte, the lowest 7 bits first."""
    rest = number * 2 if number >= 0 else -number * 2 - 1
    encoded = []
    while rest >= 128:
        encoded.append(rest % 128 + 128)
        rest //= 128
    return bytes([*encoded, rest])
