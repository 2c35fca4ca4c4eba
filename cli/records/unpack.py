"""Implements the modifier `unpack` of `hmb consume -f`: it prints fields of a binary value as text.

For example, `hmb consume -f '%v{unpack[>I s]}'` prints each value as a number of 32 bits and then a text. Each letter
in the brackets describes a field of the value. The letters are those of rpk's modifier unpack. kcat's option -s has the
same letters, except `.` and `x`. The letters for numbers and for their byte order are also those of Python's struct
module:
    <     the numbers after this letter are little endian (the default)
    >     the numbers after this letter are big endian
    b B   a number of 8 bits: signed, unsigned
    h H   a number of 16 bits: signed, unsigned
    i I   a number of 32 bits: signed, unsigned
    q Q   a number of 64 bits: signed, unsigned
    c .   one byte, printed as it is
    x     nothing: like a space, it only separates letters
    s     all remaining bytes, printed as they are
    $     checks that no bytes remain

Numbers are printed in decimal, without a separator between two fields. For example, `unpack[>hI]` prints the bytes 00
01 00 00 00 2a as `142`: the number 1, and then the number 42.

If a value is too short for a field, `unpack` prints a note in parentheses instead of the field. For example,
`unpack[>I]` reads a number of 4 bytes. If the value has only the bytes 00 01, `unpack` prints
`(I: 2 of 4 bytes)`.

The letter `$` checks that no unread bytes remain. For example, `unpack[B$]` prints the bytes 07 08 09 as
`7($: 2 bytes left)`: the first byte, and then a note.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

NUMBERS = "bBhHiIqQ"
LETTERS = f"<>{NUMBERS}c.xs$ "

Unpack = Callable[[bytes], bytes]
Step = Callable[[bytes, int], tuple[bytes, int]]  # (input, position) -> (output, next position)


class UnpackError(ValueError):
    """A letter in the brackets of a format such as `%v{unpack[>I]}` is wrong. `position` is the index of the letter."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def parse_unpack(description: str) -> Unpack:
    """Return a function that converts a binary value to text. Raises UnpackError.

    Each letter of `description` describes a field of the value. For example, ">I" means a big-endian number of 32 bits.
    """
    steps: list[Step] = []
    order = "<"
    for position, letter in enumerate(description):
        if letter not in LETTERS:
            raise UnpackError(f"{letter!r} is not a letter of unpack; the letters are {' '.join(LETTERS)}", position)
        if description[:position].rstrip(" x")[-1:] in ("s", "$") and letter not in " x":
            raise UnpackError("in unpack, no letter can follow s or $: no bytes remain after these letters", position)
        if letter in "<>":
            order = letter
        elif letter in NUMBERS:
            steps.append(_number(struct.Struct(order + letter), letter))
        elif letter in STEPS:
            steps.append(STEPS[letter])

    def unpack(data: bytes) -> bytes:
        position, printed = 0, []
        for step in steps:
            text, position = step(data, position)
            printed.append(text)
        return b"".join(printed)

    return unpack


def _number(layout: struct.Struct, letter: str) -> Step:
    size, unpack_from = layout.size, layout.unpack_from

    def step(data: bytes, position: int) -> tuple[bytes, int]:
        left = len(data) - position
        if left < size:
            return b"(%c: %d of %d bytes)" % (ord(letter), left, size), len(data)
        (number,) = unpack_from(data, position)
        return b"%d" % number, position + size

    return step


def _byte(data: bytes, position: int) -> tuple[bytes, int]:
    return (data[position : position + 1] or b"(c: 0 of 1 bytes)"), min(position + 1, len(data))


def _rest(data: bytes, position: int) -> tuple[bytes, int]:
    return data[position:], len(data)


def _end(data: bytes, position: int) -> tuple[bytes, int]:
    left = len(data) - position
    return (b"($: %d bytes left)" % left if left > 0 else b""), len(data)


STEPS: dict[str, Step] = {"c": _byte, ".": _byte, "s": _rest, "$": _end}
