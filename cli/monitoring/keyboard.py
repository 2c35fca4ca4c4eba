"""Reads single keys from the terminal.

When the user presses a letter, a terminal sends one character. When the user presses an arrow key, the terminal sends
several characters: ESC, "[" and a letter. The function `keys_in` converts these characters to the names of the keys:
for example "a", "up" or "enter".
"""

from __future__ import annotations

import codecs
import os
import re
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SEQUENCE = re.compile(r"\x1b[\[O][\d;]*[A-Za-z~]|.", re.DOTALL)
NAMES = {
    "\r": "enter",
    "\n": "enter",
    "\x1b": "escape",
    "\x7f": "backspace",
    "\b": "backspace",
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
}
MAX_BYTES = 1024  # the maximum number of bytes in one read


def keys_in(text: str) -> list[str]:
    """Return the names of the keys in a text that the terminal has sent, for example ["up", "q"] for the text "ESC[Aq".

    Leave out keys that no program of HMB uses.
    """
    found = (NAMES.get(each, each) for each in SEQUENCE.findall(text))
    return [each for each in found if each in NAMES.values() or each.isprintable()]


class Keyboard:
    """A reader for the keys that the user presses in the terminal. It reads from standard input."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def read(self, timeout: float) -> list[str]:
        """Wait at most `timeout` seconds until the user presses keys, and return the names of the keys.

        If no key is pressed, the result is empty. If the terminal is closed, the result is ["escape", "q"], as if the
        user ended `hmb top`.
        """
        if not select.select([sys.stdin], [], [], timeout)[0]:
            return []
        data = os.read(sys.stdin.fileno(), MAX_BYTES)
        return keys_in(self._decoder.decode(data)) if data else ["escape", "q"]


@contextmanager
def opened_keyboard() -> Iterator[Keyboard]:
    """Read single keys from the terminal during a `with` block.

    In the block, the program receives each key as soon as the user presses it. Normally, a terminal waits until
    the user presses Enter. After the block, the terminal has its old settings again.
    """
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield Keyboard()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
