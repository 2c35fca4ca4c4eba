"""Converts values to short texts, for the messages of `check`.

A message of `check` shows states of the user's topology. A state can have thousands of entries, or a number with more
than 300 digits. (`Mean` stores sums of floats as such numbers, so that no digit is lost.) In a message with a complete
state, a user would not find the problem. The functions of this module therefore shorten long numbers and long values.
If two large maps differ, `show_difference` shows only one entry that differs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SHOWN = 120  # characters; if the text of a value is longer, a message contains only its beginning
LONG_NUMBER = re.compile(r"\d{25,}")


def show(value: Any) -> str:
    """Return a value as text of at most SHOWN characters. A long number is replaced by its first digits."""
    text = LONG_NUMBER.sub(lambda number: f"{number[0][:6]}...({len(number[0])} digits)", repr(value))
    return text if len(text) <= SHOWN else text[: SHOWN - 4] + " ..."


def show_difference(one: Any, other: Any) -> str:
    """Return a text that shows the difference between two values, for example "1 or 2".

    If both values are maps, the text shows only one entry that differs. For example, "['a'] is 1 or 2" means that
    the key 'a' has the value 1 in the map `one`, and 2 in the map `other`.
    """
    keys: list[Any] = []
    while isinstance(one, Mapping) and isinstance(other, Mapping):
        key = min((key for key in {**one, **other} if _entry(one, key) != _entry(other, key)), key=repr)
        keys.append(key)
        one, other = _entry(one, key), _entry(other, key)
    where = "".join(f"[{show(key)}]" for key in keys)
    return f"{where + ' is ' if where else ''}{show(one)} or {show(other)}"


class Missing:
    """Stands for the value of a key that a map does not contain."""

    def __repr__(self) -> str:
        return "missing"


MISSING = Missing()


def _entry(values: Mapping[Any, Any], key: Any) -> Any:
    return values.get(key, MISSING)
