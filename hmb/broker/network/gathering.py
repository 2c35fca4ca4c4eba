"""Gathering: the broker sends the responses to several requests of one connection together.

A client can send several requests before it reads a response. The thread of the connection handles these requests one
after the other. Before the response to a Produce request with acks=all, the thread must sync the records to disk.
Without gathering, the thread would sync after each request.

With gathering, the broker sends the responses to several Produce requests together. The thread of the connection
appends the records of the first request to the log. The response must wait until the records are on disk
(broker/deferred.py), so the thread puts the response into a queue. If the next Produce request has already arrived, the
thread does the same for this request. After the last of these requests, one sync writes all records to disk. Then one
system call sends all responses in the order of the requests.

Gathering means that the broker sends the responses to several requests together. It makes a producer with acks=all
faster, because one sync writes the records of several requests to disk. In a measurement, each batch contained one
record. HMB's producer sent 4,418 records/s with gathering, and 2,590 records/s without it. The producer of
confluent-kafka sent 15,968 records/s with gathering, and 2,650 records/s without it (medians of five runs).

The response to a Produce request with acks=1 is ready at once. The connection's thread gathers at most MAX_READY = 4
such responses, and sends them with one system call. With fewer system calls, the processor switches less often between
the client and the broker.

The connection's thread sends at most four *ready* responses together. A response is ready if it does not have to wait
for the disk. A higher limit makes a producer slower. In an experiment with acks=1, the limit was 64. The client then
got many responses at once after a long wait, and the client and the broker often waited for each other. HMB's producer
sent 6,285 records/s. When the thread sent each response alone, the producer sent 16,001 records/s.

The connection's thread does not gather ready responses of APIs other than Produce, because the next request can take
long. For example, a Fetch can wait 500 ms for new records.

When you read the broker's code for the first time, read only the method `ResponseQueue.send` of this module, because
the documentation's tour of a Fetch request names this method. The method sends all responses in the queue of a
connection. After a Fetch request, the queue contains only one response, the response to this Fetch request.
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
    - While the broker handles the next request, only two kinds of responses stay in the queue: responses that must wait
      for the disk (`Deferred`), and responses to Produce requests. All other responses are sent before the next
      request.
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

        `api_key` is the API of the request that the connection has handled last. The caller has checked that the next
        request has the same API.
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
