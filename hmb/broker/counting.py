"""Counts each request: a wrapper around each handler measures the handler's time, and looks for errors in the response.

The broker calls each handler through a wrapper, which counts the request. The wrapper takes little time. It
adds 3.5 % to the processor instructions of a Produce request with one record (measured with cachegrind). For
larger requests, the difference is smaller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

from hmb.broker.context import RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.dispatch import Handler
from hmb.broker.request_counters import RequestCounters
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.messages import response_class
from hmb.protocol.primitives import part_size
from hmb.protocol.schema import Response, Struct


def counted(handlers: Mapping[ApiKey, Handler], counters: RequestCounters) -> dict[ApiKey, Handler]:
    """Return a wrapper for each handler. A wrapper calls its handler and updates `counters`.

    For each request, a wrapper gets its handler from `handlers`. A test can therefore replace a handler later, for
    example by one that fails.
    """
    return {api: _counted(api, handlers, counters) for api in handlers}


def _counted(api: ApiKey, handlers: Mapping[ApiKey, Handler], counters: RequestCounters) -> Handler:
    measure: Measure = MEASURES.get(api, _measured)
    add = counters.of(api).add

    def result(request: Any, deferred: Deferred[Response], started: float) -> Response:
        response: Response = deferred.result()
        add(time.perf_counter() - started, *measure(request, response))
        return response

    def handle(request: Any, context: RequestContext) -> Response | Deferred[Response] | None:
        started = time.perf_counter()
        observe = counters.observe
        response = handlers[api](request, context) if observe is None else observe(handlers[api], request, context)
        if isinstance(response, Deferred):
            return Deferred(partial(result, request, response, started))
        add(time.perf_counter() - started, *measure(request, response))
        return response

    return handle


# -- functions that return two values: whether a response has an error, and the size of produced or fetched records


def _measured(request: Any, response: Response | None) -> tuple[bool, int]:
    return response is not None and has_error(response), 0


def _measured_produce(request: Any, response: Any) -> tuple[bool, int]:
    """Return whether the response has an error for a partition, and the size of the request's records in bytes.

    Most requests are Produce or Fetch requests. The functions for these two APIs look for error codes in plain
    loops. These loops are three times as fast as the general function `has_error`.
    """
    size, is_error = 0, False
    for topic in request.topic_data:
        for produced in topic.partition_data:
            if produced.records is not None:
                size += len(produced.records)
    if response is not None:
        for topic in response.responses:
            for partition in topic.partition_responses:
                if partition.error_code:
                    is_error = True
    return is_error, size


def _measured_fetch(request: Any, response: Any) -> tuple[bool, int]:
    """Return whether the response has an error, and the number of bytes of the records in the response."""
    size, is_error = 0, response.error_code != 0
    for topic in response.responses:
        for partition in topic.partitions:
            records = partition.records
            if records is not None:
                size += part_size(records)
            if partition.error_code:
                is_error = True
    return is_error, size


Measure: TypeAlias = Callable[[Any, Any], tuple[bool, int]]
MEASURES: Mapping[ApiKey, Measure] = {
    ApiKey.PRODUCE: _measured_produce,
    ApiKey.FETCH: _measured_fetch,
}


# -- error codes

# An `ErrorFields` describes where a struct has error codes. The bool says whether the struct has a field `error_code`.
# The list has one pair for each array with error codes in its items. A pair contains the array's name and the
# `ErrorFields` of the items. So (False, [("topics", (True, []))]) means: only the items of `topics` have error codes.
ErrorFields: TypeAlias = tuple[bool, list[tuple[str, "ErrorFields"]]]


def has_error(response: Response) -> bool:
    """Return whether any part of a response contains an error code."""
    return _has_error((response,), _error_fields_of(response.api_key))


def _has_error(structs: Sequence[Any], fields: ErrorFields) -> bool:
    has_own, arrays = fields
    for struct in structs:
        if has_own and struct.error_code:
            return True
        for name, nested in arrays:
            if _has_error(getattr(struct, name) or (), nested):
                return True
    return False


def error_fields(struct: type[Struct]) -> ErrorFields:
    """Return where the class `struct` has the field `error_code`: directly, or in the items of arrays.

    `struct` is the class of a message or an array item. The search includes nested arrays (arrays inside items).
    """
    items = {name: field.item.struct for name, field in struct.fields.items() if field.item and field.item.struct}
    arrays = [(name, error_fields(item)) for name, item in items.items()]
    return "error_code" in struct.fields, [(name, nested) for name, nested in arrays if any(nested)]


@cache
def _error_fields_of(api: ApiKey) -> ErrorFields:
    """Return the error fields of an API: the fields of its response that contain error codes.

    The first call for an API imports the class of the API's response. Later calls return the stored result.
    """
    return error_fields(response_class(api))
