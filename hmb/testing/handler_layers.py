"""The wrappers around a broker's handlers. A test adds them while the broker runs, and removes them again.

Two parts of this folder wrap handlers. The faults are the inner layer, and the record of requests is the outer layer.
So the record shows the answers that a client really gets::

    dispatcher -> [record of requests] -> [faults] -> the broker's handler

The table contains a handler without wrappers itself, so a broker pays nothing for layers that it does not use.
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

Answered = Response | Deferred | None
Wrapper = Callable[[Handler, Request, RequestContext], Answered]  # It can call the handler.


class Layer(IntEnum):
    """The layers of wrappers around a handler, from the innermost layer to the outermost one."""

    FAULTS = 0
    RECORD = 1


class HandlerLayers:
    """A broker's table of handlers, in which tests wrap handlers. Thread-safe."""

    def __init__(self, handlers: dict[ApiKey, Handler] | None = None) -> None:
        """Wrap handlers in this table of a broker; None creates a table with all handlers."""
        self.handlers = dict(HANDLERS) if handlers is None else handlers
        self._unwrapped: dict[ApiKey, Handler] = {}  # the handlers that the wrappers replace
        self._wrappers: dict[ApiKey, dict[Layer, Wrapper]] = {}
        self._lock = threading.Lock()  # guards all tables

    def wrap(self, api: ApiKey, layer: Layer, wrapper: Wrapper) -> None:
        """Put a wrapper around the handler of an API. It replaces an earlier wrapper of the same layer."""
        with self._lock:
            self._unwrapped.setdefault(api, self.handlers[api])
            self._wrappers.setdefault(api, {})[layer] = wrapper
            self._install(api)

    def unwrap(self, api: ApiKey, layer: Layer) -> None:
        """Remove the wrapper of a layer. Do nothing if the API has no such wrapper."""
        with self._lock:
            if self._wrappers.get(api, {}).pop(layer, None) is not None:
                self._install(api)

    def _install(self, api: ApiKey) -> None:
        handler = self._unwrapped[api]
        for _, wrapper in sorted(self._wrappers[api].items()):
            handler = partial(wrapper, handler)
        self.handlers[api] = handler
