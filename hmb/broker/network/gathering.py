"""Gathering: the broker sends the responses to several requests of one connection together.

A client can send several requests before it reads a response. The thread of the connection handles these requests one
after the other. Before the response to a Produce request with acks=all, the thread must sync the records to disk.
Without gathering, the thread would sync after each request.

With gathering, the connection's thread puts the deferred response to a Produce request (broker/deferred.py) into a
queue. If another Produce request has already arrived, the thread first appends the records of this request. Later, one
sync writes the records of all gathered requests to disk. One system call sends all responses in the order of the
requests.

Measured with acks=all and one record in each batch: HMB's producer sends 4,418 records/s with gathering, and 2,590
records/s without gathering. The producer of confluent-kafka sends 15,968 records/s with gathering, and 2,650 records/s
without it (medians of five runs).

The response to a Produce request with acks=1 is ready at once. The connection's thread gathers at most MAX_READY = 4
such responses, and sends them with one system call. With fewer system calls, the processor switches less often between
the client and the broker.

If the connection's thread gathers more than four ready responses, a producer becomes slower. In an experiment with 64
responses, the client got many responses at once after a long wait. The client and the broker often waited for each
other, and HMB's producer sent only 6,285 records/s instead of 16,001.

The connection's thread does not gather ready responses of APIs other than Produce, because the next request can take
long. For example, a Fetch can wait 500 ms for new records.

In a first reading of the broker's code, read only the method `ResponseQueue.send` of this module. The documentation's
tour of a Fetch request names this method. It sends the responses in the queue of a connection. You can assume that the
queue always contains only one response. This would be true without gathering: the thread of a connection would send
each response before it handles the next request.
"""

from __future__ import annotations

import socket

from hmb.broker.deferred import Deferred, final
from hmb.broker.dispatch import EncodedResponse
from hmb.broker.network.sending import send
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.primitives import Part

MAX_DEFERRED = 64  # limit for the responses in the queue of one connection, if the last one is deferred
MAX_READY = 4  # limit for the responses in the queue of one connection, if the last one is ready


class ResponseQueue:
    """The responses that a connection has not sent yet, in the order of the requests.

    - The queue has at most MAX_DEFERRED responses.
    - Each response except the last one is deferred, or answers a Produce request. So any other response that is ready
      never waits in the queue for the next request.
    - Only the method `send` sends responses of the connection.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._responses: list[EncodedResponse | Deferred[EncodedResponse]] = []

    def add(self, response: EncodedResponse | Deferred[EncodedResponse]) -> None:
        """Append one response. The caller adds the responses in the order of the requests."""
        self._responses.append(response)

    def may_wait(self, api_key: int) -> bool:
        """Return whether the connection may handle one more request before it sends the responses in this queue.

        `api_key` is the API of the last response and of the next request.
        """
        if isinstance(self._responses[-1], Deferred):
            return len(self._responses) < MAX_DEFERRED
        return api_key == ApiKey.PRODUCE and len(self._responses) < MAX_READY

    def send(self) -> None:
        """Wait for all deferred responses in the queue, and send all responses.

        If a response cannot be created, send the responses before it and raise CloseConnection. Raises OSError if the
        connection is broken.
        """
        responses, self._responses = self._responses, []  # Empty the queue first, so that no response is sent twice.
        parts: list[Part] = []
        try:
            for response in responses:
                parts += final(response)
        finally:
            if parts:
                send(self._socket, parts)
