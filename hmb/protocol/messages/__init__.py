"""Kafka's messages: one file for each API, with one class for its request and one for its response.

A class declares all versions of its message, with one line for each field (see `hmb.protocol.schema`). The names of
classes and fields are those of Kafka's message definitions.

The name of an API determines the names of its file and of its classes, so no table lists them. For example,
`ApiKey.LIST_OFFSETS` belongs to `ListOffsetsRequest` and `ListOffsetsResponse` in `list_offsets.py`. A file is imported
when its API is first used.

Read in this order: `produce`, `fetch`, `metadata`, `join_group`, `sync_group`. A first reading can skip the others,
which follow the same pattern.
"""

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any, cast

from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response

API_KEYS = sorted(ApiKey[module.name.upper()] for module in pkgutil.iter_modules(__path__))
"""The APIs that HMB has messages for, in the order of their keys."""


def api_name(api_key: ApiKey) -> str:
    """Return the name of an API as Kafka's documentation writes it: "Produce", "ListOffsets"."""
    return api_key.name.title().replace("_", "")


@cache
def request_class(api_key: int) -> type[Request]:
    """Return the class of an API's requests. Raises KeyError for an API without messages."""
    return cast(type[Request], _message_class(api_key, "Request"))


@cache
def response_class(api_key: int) -> type[Response]:
    """Return the class of an API's responses. Raises KeyError for an API without messages."""
    return cast(type[Response], _message_class(api_key, "Response"))


def _message_class(api_key: int, suffix: str) -> Any:
    if api_key not in API_KEYS:
        raise KeyError(api_key)
    key = ApiKey(api_key)
    return getattr(import_module(f"{__name__}.{key.name.lower()}"), api_name(key) + suffix)
