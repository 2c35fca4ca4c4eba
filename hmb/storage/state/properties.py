r"""Reading Java's properties files. `server.properties` and `meta.properties` have this format.

A line is `name=value`, `name: value` or `name value`. If a line contains only a name, its value is empty. Example:
    ! a comment                            a line that begins with # or ! is a comment
    listeners=PLAINTEXT://:1,\             a backslash at the end: the next line continues this one
              SSL://:2
    a\=b\ c = \u00e9\t                     the name is `a=b c`, and the value is `é` and a tab

A *blank* is a space, a tab or a form feed. A name ends at the first `=`, `:` or blank that has no backslash
before it. Blanks at the beginning of a line or of a value are ignored, unless they have a backslash before
them. The escape sequences \t \n \r \f and \uXXXX mean the same characters as in Java.

If a file contains the same name twice, the last value counts. HMB reads properties files as
`java.util.Properties.load` does, with two exceptions:

- HMB reads the file as UTF-8, and Java reads it as Latin-1. For a file that contains only ASCII, the result is the
  same.
- HMB removes spaces, tabs and form feeds at the end of a value. Java keeps them, but Kafka removes them later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

BLANKS = " \t\f"
ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)")
ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)")
ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}  # A backslash does not change other characters.


class PropertiesError(Exception):
    """The error for a file that is not a properties file. The message contains its path, and often the line."""


def read_properties(path: Path) -> dict[str, str]:
    """Return the names and values in a properties file.

    Raises PropertiesError if the file does not have the format of a properties file. Raises OSError if the file
    cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")  # read_text replaces \r and \r\n by \n
    except UnicodeDecodeError:
        raise PropertiesError(f"{path}: the file is not text") from None
    properties = {}
    for number, line in _logical_lines(text):
        entry = ENTRY.fullmatch(line)
        assert entry is not None  # ENTRY matches every line without a backslash at its end.
        try:
            name, value = (ESCAPE.sub(_unescaped, part) for part in (entry[1], entry[2].rstrip(BLANKS)))
        except ValueError as error:
            raise PropertiesError(f"{path}, line {number}: {error}") from None
        properties[name] = value
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield `(number, line)` for each line that is not empty and is not a comment.

    If a line ends with a backslash, the next line continues this line. The function yields both as one line, with the
    number of the first line.
    """
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
