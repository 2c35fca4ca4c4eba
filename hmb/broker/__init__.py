"""The broker: it receives requests over TCP, changes or reads the logs, and sends responses.

Three layers do the work. They are the three layers of the thesis that HMB comes from (thesis, chapter 9, "Prototype")::

    a client's bytes          network/     threads, frames, responses
         |
         v
    a request's object        dispatch.py, handlers/     one handler for each API
         |
         v
    a domain call             topics/, hmb.storage, hmb.coordinator     logs, groups, transactions

*Threads.* Each connection has one thread. It reads a frame, handles the request, sends the response, and reads the next
frame. One thread is enough, because Kafka's protocol serves the requests of a connection in their order. A consumer
that waits for records waits in this thread.

*Handlers.* A handler translates a message into calls of the domain, and their results into a response. A handler takes
no lock and knows no socket. It returns a response, or `None` if the client wants no response (a Produce with acks=0),
or a `Deferred` if the response is not final yet.

*Errors.* The domain raises `KafkaError` with an error code. The handler puts the code into the response, for the
partition or the group that the error concerns. Any other exception is a fault of the broker: it closes the connection,
and the broker logs the traceback.

*One broker.* The broker is the leader of all partitions and the coordinator of all groups. It answers as a cluster of
one broker, in which each partition has one replica.

Read in this order:

1. `network/connection.py`    the loop of a connection's thread
2. `dispatch.py`              from a frame to an answer
3. `handlers/produce.py`      a handler that writes
4. `handlers/fetch.py`        a handler that reads, and waits
5. `topics/registry.py`       the topics, their creation and deletion
6. `broker.py`                the start and the stop of a broker

A first reading can skip the rest: settings (`config/`), the other handlers, listeners, and limits for memory and
descriptors. It can also skip the layout of threads in stages (`network/staged.py`), old clients (`old_clients.py`),
fetch sessions, transactions (`transactional.py`) and periodic work (`housekeeping.py`).
"""

from hmb.broker.broker import Broker

__all__ = ["Broker"]
