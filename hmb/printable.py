r"""Makes text from a client harmless, so that a log or a terminal can show this text.

A client chooses many names, for example its client id and the ids of groups. A name with a line break could add a false
line to the broker's log. A name with escape sequences could change what a terminal shows. `printable` therefore
replaces such characters by their escapes: a line break between "a" and "b" becomes the text `a\nb`.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the text, with an escape in place of each character that cannot be printed."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
