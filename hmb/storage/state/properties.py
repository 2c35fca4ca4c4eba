r"""Java's properties files: `server.properties` and `meta.properties` are written so.

A line is `name=value`, `name: value` or `name value`; a name alone has an empty value. Lines are read like this::

    # a comment, ! one too                 only at the beginning of a line
    listeners=PLAINTEXT://:1,\             a backslash at the end goes on in the next line, without its indentation
              SSL://:2
    a\=b\ c = \u00e9\t                     a backslash takes the meaning of =, : and blanks away, and gives one to
                                           t, n, r, f and four hexadecimal digits after u

Of two lines with one name the later wins. Two things are not as in `java.util.Properties.load`: the files are UTF-8
(Java: Latin-1; for ASCII it is the same), and blanks at the end of a value are left out, which Kafka does later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

BLANKS = " \t\f"
ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)")
ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)")
ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}  # any other character stands for itself


class PropertiesError(Exception):
    """A file that is no properties file; says which line."""


def read_properties(path: Path) -> dict[str, str]:
    """Names and values. Raises PropertiesError, and OSError where the file cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")  # which makes all ends of lines \n
    except UnicodeDecodeError:
        raise PropertiesError(f"{path}: not text") from None
    properties = {}
    for number, line in _logical_lines(text):
        entry = ENTRY.fullmatch(line)
        assert entry is not None  # it takes every line without a backslash at its end
        try:
            name, value = (ESCAPE.sub(_unescaped, part) for part in (entry[1], entry[2].rstrip(BLANKS)))
        except ValueError as error:
            raise PropertiesError(f"{path}, line {number}: {error}") from None
        properties[name] = value
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines put together over their continuations, with the number of the first; no comments, no empty ones."""
    parts: list[str] = []
    for number, natural in enumerate(text.split("\n"), 1):
        line = natural.lstrip(BLANKS)
        if not parts:
            if not line or line[0] in "#!":
                continue
            first = number
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        parts.append(line[:-1] if goes_on else line)
        if not goes_on:
            yield first, "".join(parts)
            parts.clear()
    if parts:
        yield first, "".join(parts)


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code == "u":
        raise ValueError(r"\u without four hexadecimal digits")
    return chr(int(code[1:], 16)) if len(code) > 1 else ESCAPED.get(code, code)
