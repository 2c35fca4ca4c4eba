"""Puts wrappers around the broker's handlers, to throttle clients that exceed their quotas.

A wrapper calls the handler of an API, and then measures what the request has used: for example, how many bytes of
records. If the client has exceeded a quota, the response contains the time that the client should wait
(`throttle_time_ms`). The broker sends this response at once. A client could ignore the time, so the broker also *mutes*
the connection: it reads no request from this connection until the time is over:
    request -> handler -> response with throttle_time_ms=5000 -> nothing is read for 5 s -> next request

The broker has a table that contains a handler for each API. If a quota limits an API, the table contains a
wrapper instead of the API's handler.

Only an API with a quota gets a wrapper (a function that measures requests). Other APIs cause no additional
work. When the quotas change, the broker adds or removes wrappers.

If a Fetch request exceeds a quota, Kafka sends a response without records. HMB sends the records, because a
consumer with a small quota could otherwise never read a large batch. HMB then reads no request of this consumer
until the throttle time is over. The average rate is therefore the same as in Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from hmb.broker.context import RequestContext
from hmb.broker.counting import MEASURES, Measure
from hmb.broker.deferred import Deferred
from hmb.broker.dispatch import Handler
from hmb.broker.security.quotas.limits import QuotaClient
from hmb.broker.security.quotas.measuring import ClientQuotas
from hmb.broker.security.store import SecurityState
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import QuotaKey
from hmb.protocol.schema import Response

KEYS = {
    ApiKey.PRODUCE: QuotaKey.PRODUCER_BYTE_RATE,
    ApiKey.FETCH: QuotaKey.CONSUMER_BYTE_RATE,
    ApiKey.SHARE_FETCH: QuotaKey.CONSUMER_BYTE_RATE,
    ApiKey.CREATE_TOPICS: QuotaKey.CONTROLLER_MUTATION_RATE,
    ApiKey.DELETE_TOPICS: QuotaKey.CONTROLLER_MUTATION_RATE,
    ApiKey.CREATE_PARTITIONS: QuotaKey.CONTROLLER_MUTATION_RATE,
}
"""The quota that concerns one API. REQUEST_PERCENTAGE concerns all APIs."""

SIZES: Mapping[ApiKey, Measure] = {
    ApiKey.PRODUCE: MEASURES[ApiKey.PRODUCE],
    ApiKey.FETCH: MEASURES[ApiKey.FETCH],
    ApiKey.SHARE_FETCH: MEASURES[ApiKey.FETCH],
}
"""The functions that return the bytes of records in a request or in a response, as the second value."""


def throttled(
    handlers: Mapping[ApiKey, Handler], quotas: ClientQuotas
) -> tuple[dict[ApiKey, Handler], Callable[[SecurityState], None]]:
    """Return a table of handlers, and a function `load` that updates the table for new quotas.

    The returned table is a copy of `handlers`. The caller must call `load` with the stored quotas before it uses
    the table, and again after each change of the quotas.

    If a quota concerns an API, `load` replaces the API's handler in the table by a wrapper. The wrapper calls the
    handler, and throttles a client that has exceeded the quota.
    """
    table = dict(handlers)
    wrappers = {api: _throttling(api, handlers, quotas) for api in handlers}

    def load(state: SecurityState) -> None:
        quotas.load(state)
        keys = quotas.limits.keys
        for api, handler in handlers.items():
            is_limited = QuotaKey.REQUEST_PERCENTAGE in keys or KEYS.get(api) in keys
            table[api] = wrappers[api] if is_limited else handler

    return table, load


def _throttling(api: ApiKey, handlers: Mapping[ApiKey, Handler], quotas: ClientQuotas) -> Handler:
    def handle(request: Any, context: RequestContext) -> Response | Deferred[Response] | None:
        client = QuotaClient.of(context.client.principal, context.header.client_id)
        if api == ApiKey.FETCH and (most := quotas.most_bytes(client)) is not None:
            request.max_bytes = min(request.max_bytes, int(most))
        started = time.thread_time()
        response = handlers[api](request, context)
        seconds = time.thread_time() - started
        wait = quotas.record(QuotaKey.REQUEST_PERCENTAGE, client, seconds * 100)
        if api in SIZES:
            # Of the APIs in SIZES, only Produce can return a `Deferred`: a response that is not ready yet. For Produce,
            # the function in SIZES measures the records in the request, so it needs no response.
            _, size = SIZES[api](request, None if isinstance(response, Deferred) else response)
            wait = max(wait, quotas.record(KEYS[api], client, size))
        context.client.mute(wait)
        wait, context.client.throttle_ms = context.client.throttle_ms, 0
        return _with_throttle_time(wait, response)

    return handle


def _with_throttle_time(
    wait: int, response: Response | Deferred[Response] | None
) -> Response | Deferred[Response] | None:
    """Write the throttle time into a response. If the response is not ready yet, do this when it is ready."""
    if isinstance(response, Deferred):
        return Deferred(lambda: _written(wait, response.result()))
    return None if response is None else _written(wait, response)


def _written(wait: int, response: Any) -> Response:
    if "throttle_time_ms" in response.fields:
        response.throttle_time_ms = max(wait, response.throttle_time_ms)
    return cast(Response, response)
