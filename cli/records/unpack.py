r"""`%v{unpack[>I s]}`: binary values as text, by a description of their fields.

The letters are those of Python's struct module, and of kcat's -s and rpk's unpack, which have them from there:

    <  >      what follows is little endian (at first it is) or big endian; may be switched in between
    b B       a signed, an unsigned number of 8 bits       h H   of 16 bits
    i I       of 32 bits                                   q Q   of 64 bits
    c  .      one byte as it is                            x     nothing: it may stand between others, as a space may
    s         all the rest as it is                        $     nothing may be left here

Numbers are printed in decimal, and nothing is put between two fields. Where the input is too short, or `$` finds that
something is left, that is said in place of the field, for one odd value must not end the output of the others.
"""

import struct
from collections.abc import Callable

NUMBERS = "bBhHiIqQ"
LETTERS = f"<>{NUMBERS}c.xs$ "

Unpack = Callable[[bytes], bytes]
Step = Callable[[bytes, int], tuple[bytes, int]]  # (input, position) -> what to print, next position


class UnpackError(ValueError):
    """What is wrong with a description, and at which of its characters."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def parse_unpack(description: str) -> Unpack:
    """The function that a description stands for."""
    steps: list[Step] = []
    order = "<"
    for position, letter in enumerate(description):
        if letter not in LETTERS:
            raise UnpackError(f"{letter!r} is none of unpack's letters: {' '.join(LETTERS)}", position)
        if description[:position].rstrip(" x")[-1:] in ("s", "$") and letter not in " x":
            raise UnpackError("nothing can follow s or $: they take all that is left", position)
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
