"""Gathering: the broker sends the responses to several requests of one connection together.

A client can send several Produce requests before it reads a response. The thread of the connection handles
these requests one after the other. With acks=all, the thread must sync a request's records to disk before it
responds. A separate sync for each request would be slow.

With gathering, one sync serves several Produce requests. For each request, the connection's thread appends the
records to the log, and adds a deferred response to a queue (broker/deferred.py). If another Produce request has
already arrived, the thread handles this request before the sync.

The thread starts the sync after 64 requests (MAX_DEFERRED), or earlier if no further Produce request has
arrived. Then one system call sends all responses in the queue, in the order of the requests.

Gathering makes a producer with acks=all faster. In a measurement with one record in each batch, HMB's producer
sent 4,418 records/s with gathering, and 2,590 records/s without it. The producer of confluent-kafka sent 15,968
records/s with gathering, and 2,650 records/s without it (medians of five runs).

A response is *ready* if it does not have to wait for the disk. For example, the response to a Produce request with
acks=1 is ready at once. The connection's thread collects up to four ready responses (MAX_READY), and sends them with
one system call. After each system call, the operating system can switch from the broker to the client and back. Fewer
system calls cause fewer switches.

A limit of more than four ready responses would make a producer slower. With a limit of 64, the client would
wait long and then receive many responses at once. The client and the broker would often wait for each other. In
a measurement with acks=1, HMB's producer sent 6,285 records/s with the limit 64, and 16,001 records/s with one
response at a time.

Ready responses may stay in the queue only if they answer Produce requests. The thread sends all others at
once. For example, a client sends two Fetch requests, and the second Fetch must wait 500 ms for new records. The
thread sends the first response before this wait.

If you are following the tour of a Fetch request through the broker's code, you need only `ResponseQueue.send`.
This method sends all responses in the queue of a connection. After a Fetch request, the queue contains only the
response to this request. You can skip the rest of the module on a first reading.
"""

from __future__ import annotations

import socket

from hmb.broker.deferred import Deferred, final
from hmb.broker.dispatch import EncodedResponse
from hmb.broker.network.sending import send
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.primitives import Part

# If the newest response waits for a sync to disk, the queue of a connection can grow to 64 responses.
MAX_DEFERRED = 64
# If the newest response needs no sync to disk, the queue can grow to 4 responses. With more, a client would wait long.
MAX_READY = 4


class ResponseQueue:
    """The responses that a connection has not sent yet, in the order of the requests.

    - The queue has at most MAX_DEFERRED responses.
    - While the broker handles the next request, only two kinds of responses can stay in the queue: responses that
      wait for the disk (`Deferred`), and responses to Produce requests.
    - Only the method `send` sends responses to the client.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._responses: list[EncodedResponse | Deferred[EncodedResponse]] = []

    def add(self, response: EncodedResponse | Deferred[EncodedResponse]) -> None:
        """Append one response. The caller adds the responses in the order of the requests."""
        self._responses.append(response)

    def may_wait(self, api_key: int) -> bool:
        """Return whether the responses in this queue may wait while the connection handles one more request.

        `api_key` is the API of the last request. The caller has checked that the next request has the same API.
        """
        if isinstance(self._responses[-1], Deferred):
            return len(self._responses) < MAX_DEFERRED
        return api_key == ApiKey.PRODUCE and len(self._responses) < MAX_READY

    def send(self) -> None:
        """Wait until all responses in the queue are ready, and send them.

        Raises CloseConnection if the broker cannot create one of the responses. For example, if the third of five
        responses fails, the method sends only responses 1 and 2. Raises OSError if the connection is broken.
        """
        responses, self._responses = self._responses, []  # Empty the queue first, so that no response is sent twice.
        parts: list[Part] = []
        try:
            for response in responses:
                parts += final(response)
        finally:
            if parts:
                send(self._socket, parts)
