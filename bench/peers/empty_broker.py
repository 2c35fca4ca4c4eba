"""A broker that discards records: the highest rate that a producer can reach with a broker in Python.

    hmb bench produce --empty

In a run of a benchmark, the client and the broker share the machine. A faster broker raises the rate only while the
broker is the limit. The empty broker shows how much the rate could rise. It is HMB's broker with a change to Produce:
it handles the first Produce request of a connection as usual and keeps the response. It reads every later Produce
request from the socket without decoding it. It then returns the first response with the new correlation id.

The difference between the rates of HMB and of the empty broker is an upper limit. HMB cannot gain more by doing less
work for a request.
"""

from __future__ import annotations

import sys
from importlib import import_module

from hmb.broker.dispatch import Dispatcher, EncodedResponse
from hmb.broker.network import server
from hmb.broker.network.request_memory import UNCOUNTED, Account
from hmb.protocol.api_keys import ApiKey

from .hmb_broker import Hmb

PRODUCE = ApiKey.PRODUCE.to_bytes(2)
# The correlation id has the same position in both messages, if a request is read without its size. Then a request
# begins with int16 api_key, int16 api_version, int32 correlation_id, and a response begins with int32 size, int32
# correlation_id.
CORRELATION_ID = slice(4, 8)


class EmptyBroker(Hmb):
    """A broker that discards records: HMB's broker, which keeps only the records of each connection's first Produce."""

    name = "an empty broker"

    def command(self) -> list[str]:
        hmb, *arguments = super().command()
        return [str(self.installation.python), "-m", "hmb.bench.peers.empty_broker", hmb, *arguments]


class DiscardingDispatcher(Dispatcher):
    """Answers every Produce request of a connection with the response to the first one."""

    _first_response = b""

    def begin(self, frame: memoryview, memory: Account = UNCOUNTED) -> EncodedResponse:
        if frame[:2] != PRODUCE:
            return super().begin(frame, memory)
        if not self._first_response:
            parts = super().begin(frame, memory).parts()
            self._first_response = b"".join(part for part in parts if isinstance(part, bytes))
            return EncodedResponse(parts)
        copy = bytearray(self._first_response)
        copy[CORRELATION_ID] = frame[CORRELATION_ID]
        return EncodedResponse(wait=lambda: [bytes(copy)])


if __name__ == "__main__":
    del sys.argv[0]  # The remaining arguments are those of `hmb broker`.
    server.Dispatcher = DiscardingDispatcher  # type: ignore[attr-defined]
    import_module("hmb.cli.entry").run()
