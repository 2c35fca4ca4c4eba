"""Kafka's messages: one file for each API, with a class for the request and a class for the response.

A class declares all versions of its message, with one line for each field (see `hmb.protocol.schema`). Classes and
fields have the same names as in Kafka's message definitions.

This module finds the classes of an API by name, without a table. For example, the classes of `ApiKey.LIST_OFFSETS` are
`ListOffsetsRequest` and `ListOffsetsResponse` in `list_offsets.py`. The module imports this file when the API is first
used.

The folder `messages` itself is the list of the APIs: when Python imports this module, the module reads the names of the
folder's files into `API_KEYS`. To add the messages of an API, it is therefore enough to add a file. (The broker also
needs a handler of this API, a file in hmb/broker/handlers.)

Read these files first: `produce`, `fetch`, `metadata`, `join_group`, `sync_group`. All other files follow the same
pattern.
"""

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any, cast

from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response

API_KEYS = sorted(ApiKey[module.name.upper()] for module in pkgutil.iter_modules(__path__))
"""The APIs that HMB has messages for, in the order of their keys."""


def api_name(api_key: int) -> str:
    """Return the name of an API in the spelling of Kafka's documentation, for example "ListOffsets".

    Kafka has no API for some numbers. The name of such a number is, for example, "api key 99".
    """
    try:
        return ApiKey(api_key).name.title().replace("_", "")
    except ValueError:
        return f"api key {api_key}"


@cache
def request_class(api_key: int) -> type[Request]:
    """Return the class of an API's requests. Raises KeyError if HMB has no classes for this API."""
    return cast(type[Request], _message_class(api_key, "Request"))


@cache
def response_class(api_key: int) -> type[Response]:
    """Return the class of an API's responses. Raises KeyError if HMB has no classes for this API."""
    return cast(type[Response], _message_class(api_key, "Response"))


def _message_class(api_key: int, suffix: str) -> Any:
    if api_key not in API_KEYS:
        raise KeyError(api_key)
    key = ApiKey(api_key)
    return getattr(import_module(f"{__name__}.{key.name.lower()}"), api_name(key) + suffix)
