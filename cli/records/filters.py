"""Which records `hmb consume` prints: regular expressions on key, value and headers, all of which have to match.

They are searched for in the bytes, as grep does, so a record need not be text; what is null matches nothing.
"""

import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from ..shared.common import name_value

if TYPE_CHECKING:
    from hmb.client import ConsumerRecord

Search = Callable[[bytes], object]
HeaderFilter = tuple[str, Search]


def search(text: str) -> Search:
    """The type of an option: a regular expression."""
    try:
        return re.compile(os.fsencode(text)).search
    except re.error as error:
        place = f"\n  {text}\n  {' ' * error.pos}^" if error.pos is not None and text.isprintable() else ""
        raise click.BadParameter(f"not a regular expression: {error.msg}{place}") from None


def header_search(text: str) -> HeaderFilter:
    """The type of an option: the name of a header, and a regular expression for its value."""
    name, expression = name_value(text)
    return name, search(expression)


def record_filter(
    keys: Sequence[Search], values: Sequence[Search], headers: Sequence[HeaderFilter]
) -> "Callable[[list[ConsumerRecord]], list[ConsumerRecord]] | None":
    """The function that keeps those records that match; None if all do."""
    if not (keys or values or headers):
        return None

    def matches(record: "ConsumerRecord") -> bool:
        return (
            all(record.key is not None and found(record.key) for found in keys)
            and all(record.value is not None and found(record.value) for found in values)
            and all(
                any(key == name and value is not None and found(value) for key, value in record.headers)
                for name, found in headers
            )
        )

    return lambda records: [record for record in records if matches(record)]
