"""A function that encodes varints. The two checks of lab 5 use it instead of HMB's own function."""

from __future__ import annotations


def zigzag_varint(number: int) -> bytes:
    """Encode a number as a zigzag varint.

    Zigzag first converts the number to a number that is not negative: 0, -1, 1 and -2 become 0, 1, 2 and 3. Each
    byte of the varint then contains 7 bits of this number, beginning with the lowest 7 bits. The highest bit of a
    byte is 1 if another byte follows.
    """
    rest = number * 2 if number >= 0 else -number * 2 - 1
    encoded = []
    while rest >= 128:
        encoded.append(rest % 128 + 128)
        rest //= 128
    return bytes([*encoded, rest])
