"""Wrappers around a broker's handlers. A test adds and removes wrappers while the broker runs.

The broker's dispatcher looks up the handler of each API in a table. A test can replace a handler in this table
with a *wrapper*: a function that receives each request, and may call the original handler. For an API without a
wrapper, the table still contains the original handler, so requests of this API are as fast as before.

Two modules add wrappers around request handlers:
- `requests.py` in this folder simulates faults. For example, its wrapper answers a request with an error.
- `hmb/testing/request_record.py` records each request and its response.

A handler can have two wrappers. The inner wrapper (`faults`) simulates faults, and can change a response. The
outer wrapper (`record of requests`) records the response that the client receives:
    dispatcher -> [record of requests] -> [faults] -> the broker's handler
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import IntEnum
from functools import partial

from hmb.broker.context import RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.dispatch import Handler
from hmb.broker.handlers import HANDLERS
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response

Answered = Response | Deferred[Response] | None
Wrapper = Callable[[Handler, Request, RequestContext], Answered]  # A wrapper may call the handler that it wraps.


class Layer(IntEnum):
    """The position of a wrapper around a handler. A wrapper with a lower number is closer to the handler."""

    FAULTS = 0
    RECORD = 1


class HandlerLayers:
    """A broker's table of handlers, to which tests add wrappers. Thread-safe."""

    def __init__(self, handlers: dict[ApiKey, Handler] | None = None) -> None:
        """Use the broker's table `handlers`. If `handlers` is None, create a table with all handlers of HMB."""
        self.handlers = dict(HANDLERS) if handlers is None else handlers
        self._unwrapped: dict[ApiKey, Handler] = {}  # the broker's own handlers of the wrapped APIs
        self._wrappers: dict[ApiKey, dict[Layer, Wrapper]] = {}
        self._lock = threading.Lock()  # guards all tables

    def wrap(self, api: ApiKey, layer: Layer, wrapper: Wrapper) -> None:
        """Put a wrapper around the handler of an API, at the position `layer`.

        If this position already has a wrapper, the new wrapper replaces it.
        """
        with self._lock:
            self._unwrapped.setdefault(api, self.handlers[api])
            self._wrappers.setdefault(api, {})[layer] = wrapper
            self._install(api)

    def unwrap(self, api: ApiKey, layer: Layer) -> None:
        """Remove this layer's wrapper around the handler of an API. If no such wrapper exists, do nothing."""
        with self._lock:
            if self._wrappers.get(api, {}).pop(layer, None) is not None:
                self._install(api)

    def _install(self, api: ApiKey) -> None:
        handler = self._unwrapped[api]
        for _, wrapper in sorted(self._wrappers[api].items()):
            handler = partial(wrapper, handler)
        self.handlers[api] = handler
