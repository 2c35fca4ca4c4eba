"""Filters of `hmb consume`: regular expressions for key, value and headers. A record must match all of them.

An expression is searched in the bytes, as grep does, so a record need not be text. Null matches no expression.
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
    """Compile a regular expression for bytes."""
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
    """Return the function that keeps matching records; None if there are no filters."""
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
