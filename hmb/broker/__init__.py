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
no lock and uses no socket. It returns a response, or `None` if the client wants no response (a Produce with acks=0),
or a `Deferred` if the response is not final yet.

*Errors.* The domain raises `KafkaError` with an error code. The handler puts the code into the response, for the
partition or the group that the error concerns. Any other exception is an internal error: the broker logs the traceback
and closes the connection.

*One broker.* The broker is the leader of all partitions and the coordinator of all groups. It answers as a cluster of
one broker, in which each partition has one replica.

Read in this order:

1. `network/connection.py`    the loop of a connection's thread
2. `dispatch.py`              from a frame to an answer
3. `handlers/produce.py`      a handler that writes
4. `handlers/fetch.py`        a handler that reads, and waits
5. `topics/registry.py`       the topics, their creation and deletion
6. `broker.py`                the start and the stop of a broker

The short reading of HMB contains the first four files. A first reading can skip all other files of this folder:

- *versions*      `old_clients.py` converts records, `leader_epochs.py` checks epochs that other brokers wrote
- *faults*        `network/requests.py`, `network/request_memory.py` and `network/descriptors.py` limit what clients use
- *speed*         `deferred.py`, `network/gathering.py`, `fetch_sessions.py` (a step of the tour of a Fetch)
- *conveniences*  `config/` (settings), `housekeeping.py` (periodic work), `network/staged.py` (the thesis's threads),
  `transactional.py` (transactions), the other handlers, and the other modules of `topics/` and `network/`
"""

from hmb.broker.broker import BrokerServer

__all__ = ["BrokerServer"]
