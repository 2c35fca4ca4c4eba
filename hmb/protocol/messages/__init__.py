"""Kafka's messages: one file for each API, with a class for the request and a class for the response.

A class declares all versions of its message, with one line for each field (see `hmb.protocol.schema`). Classes and
fields have the same names as in Kafka's message definitions.

Some of Kafka's APIs have no messages in HMB, for example the API `Vote`. Kafka's controllers use `Vote` to
elect their leader, and HMB has no such election.

This module finds the file and the classes of an API by the name of the API. For example, the API `ApiKey.LIST_OFFSETS`
has the file `list_offsets.py`, with the classes `ListOffsetsRequest` and `ListOffsetsResponse`. The module imports the
file of an API only when the API is used for the first time.

The module has no written list of the APIs. When Python imports this module, it builds the list `API_KEYS` from the
names of the files in the folder `messages`. To add the messages of an API, you therefore only add a file to this
folder. (The broker also needs a handler for the API: a file in hmb/broker/handlers.)

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
    """Return the name of an API as Kafka's documentation writes it, for example "ListOffsets".

    If Kafka has no API with this key, return a text such as "api key 99".
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
