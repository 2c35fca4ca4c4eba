"""Filters of `hmb consume`: regular expressions for the key, the value and the headers of a record.

The user can give several expressions. `hmb consume` prints a record only if all of them match. As in grep, it
is enough if an expression matches a part of the key, the value or the header. The expressions match bytes, so a
key or value need not be text. No expression matches a null key or value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..shared.parameters import bad_expression, name_value

if TYPE_CHECKING:
    from hmb.client import ConsumerRecord

Search = Callable[[bytes], object]
HeaderFilter = tuple[str, Search]


def bytes_expression(text: str) -> Search:
    """Compile a regular expression, and return its search function for bytes. Raises click.BadParameter."""
    try:
        return re.compile(os.fsencode(text)).search
    except re.error as error:
        raise bad_expression(text, error) from None


def header_expression(text: str) -> HeaderFilter:
    """Parse `NAME=REGEX`: the name of a header, and a regular expression for its value."""
    name, expression = name_value(text)
    return name, bytes_expression(expression)


def record_filter(
    keys: Sequence[Search], values: Sequence[Search], headers: Sequence[HeaderFilter]
) -> Callable[[list[ConsumerRecord]], list[ConsumerRecord]] | None:
    """Return a function that returns the matching records of a list. Return None if the user has set no filter."""
    if not (keys or values or headers):
        return None

    def has_header(record: ConsumerRecord, name: str, search: Search) -> bool:
        return any(key == name and value is not None and search(value) for key, value in record.headers)

    def matches(record: ConsumerRecord) -> bool:
        return (
            all(record.key is not None and search(record.key) for search in keys)
            and all(record.value is not None and search(record.value) for search in values)
            and all(has_header(record, name, search) for name, search in headers)
        )

    return lambda records: [record for record in records if matches(record)]
