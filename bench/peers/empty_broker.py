"""A broker that discards records. It shows the highest rate that a producer can reach with a broker in Python.

This command measures three brokers: HMB, Kafka 4.3.0, and the empty broker, which discards records:
    hmb bench produce --empty

In a benchmark, the client and the broker share one machine. If the client is the bottleneck, a faster broker does not
increase the rate. The empty broker does almost no work, so its rate is the limit: no faster broker can exceed it.

The empty broker differs from HMB's broker only for Produce requests. It handles the first Produce request of each
connection as usual, and stores the response. It does not decode later Produce requests, so it discards their records.
It answers each of them with a copy of the stored response, in which only the correlation id is different.
"""

from __future__ import annotations

import sys
from importlib import import_module

from hmb.broker.deferred import Deferred, final
from hmb.broker.dispatch import Dispatcher, EncodedResponse
from hmb.broker.network import server
from hmb.broker.network.request_memory import UNCOUNTED, Account
from hmb.protocol.api_keys import ApiKey

from .hmb_broker import Hmb

PRODUCE = ApiKey.PRODUCE.to_bytes(2)
# In a response, the correlation id follows the response's size (int32). In a request, the correlation id follows the
# API key and the API version (int16 each), because the server has already removed the request's size.
CORRELATION_ID = slice(4, 8)


class EmptyBroker(Hmb):
    """A broker that appends only the records in the first Produce request of each connection.

    The broker discards all other records. It does almost no work for them, so a benchmark shows the highest rate of the
    producer.
    """

    name = "an empty broker"

    def command(self) -> list[str]:
        hmb, *arguments = super().command()
        return [str(self.installation.python), "-m", "hmb.bench.peers.empty_broker", hmb, *arguments]


class DiscardingDispatcher(Dispatcher):
    """A dispatcher that handles the first Produce request of a connection, and discards all later Produce requests.

    The dispatcher answers a later Produce request with a copy of the first response. In the copy, only the
    correlation id is different.
    """

    _first_response = b""

    def begin(self, frame: memoryview, memory: Account = UNCOUNTED) -> EncodedResponse | Deferred[EncodedResponse]:
        if frame[:2] != PRODUCE:
            return super().begin(frame, memory)
        if not self._first_response:
            parts = final(super().begin(frame, memory))
            self._first_response = b"".join(part for part in parts if isinstance(part, bytes))
            return parts
        copy = bytearray(self._first_response)
        copy[CORRELATION_ID] = frame[CORRELATION_ID]
        return Deferred(lambda: [bytes(copy)])


if __name__ == "__main__":
    del sys.argv[0]  # The remaining arguments are those of `hmb broker`.
    server.Dispatcher = DiscardingDispatcher  # type: ignore[attr-defined]
    import_module("hmb.cli.entry").run()
