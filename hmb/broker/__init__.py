"""The broker: a server that receives requests over TCP, writes or reads logs, and sends responses.

The broker has three layers, as in the bachelor thesis that HMB is based on (thesis, chapter 9, "Prototype"). In
each layer, a request has another form, which the left column shows. The other columns show where the code of
the layer is, and what it handles:
    the bytes of a frame      network/     threads, frames, responses
         |
         v
    a request object          dispatch.py, handlers/     one handler for each API
         |
         v
    calls of functions        topics/, hmb.storage, hmb.coordinator (the domain layer)     logs, groups, transactions

*Threads.* Each connection has one thread. The thread reads a frame, handles the request, sends the response, and reads
the next frame. (If the next request has already arrived, the thread may handle it before it sends the response: see
network/gathering.py.) One thread for each connection is enough, because a broker handles the requests of one connection
one after the other. If a consumer waits for new records, only the thread of this consumer's connection waits.

*Handlers.* Each API, such as Produce, has a handler. The handler calls functions of the domain layer (logs, groups,
transactions), and makes a response from the results of these functions. A handler takes no lock and uses no socket.

A handler returns a response, `None`, or a `Deferred`. `None` means that the client wants no response (a Produce
with acks=0). A `Deferred` means that the response must wait, for example until records are on disk. Meanwhile,
the connection's thread can handle further requests.

The handler of Fetch never returns a `Deferred`. It waits for new records in the connection's thread, so this
thread handles no further requests during the wait.

*Errors.* The code for logs, groups and transactions raises `KafkaError`, which contains an error code of Kafka.
The handler puts this code into the response, at the partition or the group that caused the error. If a client
breaks the protocol, for example with a malformed request, the broker logs a warning and closes the connection.
(The only exception is an ApiVersions request of an unknown version, which gets a response.) Any other exception
of a handler is an internal error: the broker logs the traceback and closes the connection.

*One broker.* Each HMB broker is a cluster of its own. The broker is the leader of all its partitions and the
coordinator of all its groups. Each partition has one replica.

Read in this order:
1. `network/connection.py`    the loop of a connection's thread
2. `dispatch.py`              from a frame to a response
3. `handlers/produce.py`      a handler that writes
4. `handlers/fetch.py`        a handler that reads
5. `long_poll.py`             how Fetch and ShareFetch wait for records
6. `topics/registry.py`       the topics, their creation and deletion
7. `lifecycle.py`             how a broker starts and stops; `coordinators.py` creates its coordinators

When you read this folder for the first time, these files are enough: `network/connection.py`, `dispatch.py`,
`handlers/produce.py`, `handlers/fetch.py` and `long_poll.py`. Also read two methods in `network/`:
`Requests.next` and `ResponseQueue.send`.

You can read the other files of this folder later. The next list shows their purposes:
- *versions*      `old_clients.py` converts records for old clients, `leader_epochs.py` checks leader epochs
- *protection*    `network/requests.py`, `network/request_memory.py`, `network/descriptors.py`: limits for each client
- *speed*         `deferred.py`, `network/gathering.py`, `fetch_sessions.py` (smaller Fetch requests and responses)
- *security*      `security/` (TLS, logins, ACLs), `authorized.py` (the operations that a client may perform)
- *more features* `config/` (settings), `housekeeping.py` (periodic work), `transactional.py` (transactions), `share/`
  (share groups), the other handlers, and the other modules of `topics/` and `network/`
- *threads*       `network/staged.py` (a server with separate threads for reading, handling and sending, from the
  thesis *Functional Kafka*)
- *measurements*  `counting.py` and `request_counters.py` (counters of requests), `telemetry/` (metrics of clients)

All handlers use three small modules: `context.py` (the second argument of each handler), `errors.py` (the two ways in
which a handler reports an error), and `shared_responses.py` (functions that several handlers use).
"""

from hmb.broker.lifecycle import BrokerServer

__all__ = ["BrokerServer"]
