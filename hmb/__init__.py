"""HMB: a Kafka-compatible message broker with readable source code.

Producers send messages to a broker, and consumers read these messages from the broker. In Kafka, the broker
mainly keeps logs: files to which messages are only appended. A producer appends record batches to the end of a
log. A consumer reads from any offset. With the default settings, the broker changes only two fields of a batch:
the base offset and the leader epoch in its first 16 bytes. (A partition's leader epoch is a number that
increases when the partition gets a new leader.) All other bytes are the same in the producer's request, in the
log's file and in the consumer's response.

The code cites a bachelor thesis about Kafka as "thesis": *Functional Kafka* by Marc Juchli and Lorenz Wolf, 2015. The
page `docs/bibliography.md` contains its whole title, and all other works that HMB is based on.

HMB has these folders, in the order from the lowest layer to the highest layer:

- `hmb.protocol`     encodes and decodes the messages of Kafka's protocol; does no I/O
- `hmb.records`      record batches: format, compression, checksums
- `hmb.security`     code that brokers and clients share: TLS certificates, SCRAM, security protocols
- `hmb.storage`      the log, in files with Kafka's format: segments, indexes, recovery, compaction
- `hmb.coordinator`  consumer groups, committed offsets, transactions, producer ids
- `hmb.broker`       connections, one handler for each API, topics, settings
- `hmb.client`       producer, consumer, admin client; does not import the broker
- `hmb.hailstorm`    stream processing in which each record counts exactly once; uses the client
- `hmb.spark`        lets Apache Spark read and write topics; uses the client
- `hmb.mirror`       copies topics from one cluster to another cluster; uses the client
- `hmb.monitoring`   the state of a running broker, as a web page and as metrics for Prometheus
- `hmb.testing`      a broker and pytest fixtures for tests; uses the broker and the client
- `hmb.cli`          the commands, for example `hmb broker` (in the folder `cli/`)
- `hmb.bench`        benchmarks of HMB and Kafka (in the folder `bench/`)
- `hmb.labs`         exercises in which students build parts of a broker (in the folder `labs/`)
- `state_table`, `units`, `uuids`, `printable`, `defaults`  small modules that several folders use

The short reading is a list of fifteen files. They show how records get into a log, and how consumers read the
records. Read the files in the order of the list. Together, they have at most 3,000 lines.

 1. `protocol/framing.py` defines a frame: four bytes with the length of a message, and then the message
 2. `protocol/messages/produce.py` declares the messages of Produce: one line for each field, for all versions
 3. `records/batch.py` contains the record batch: the broker reads the header of a batch, but not its records
 4. `storage/segment.py` contains the segment: one file of batches, with two indexes
 5. `storage/offset_index.py` contains the sparse index: for an offset, it returns a position in the segment's file
 6. `storage/log.py` contains the log: it appends, reads, starts new segments, and syncs to disk
 7. `storage/recovery/scanning.py` recovers a log after a crash: it finds the end of the intact batches
 8. `broker/network/connection.py` serves a connection: one thread reads requests and sends responses
 9. `broker/dispatch.py` decodes a request, calls the handler of the request's API, and encodes the response
10. `broker/handlers/produce.py` handles Produce: it appends batches to logs; with acks=all, it responds after the sync
11. `broker/handlers/fetch.py` handles Fetch: it responds with bytes of log files, and waits for new records
12. `coordinator/classic/states.py` contains a table: how events change the state of a consumer group
13. `coordinator/classic/rebalance.py` runs a rebalance: members join, and the group leader assigns partitions
14. `client/producing/sender.py` contains a producer's threads: one finds partition leaders, the others send batches
15. `client/consuming/fetcher.py` fetches records for a consumer, before the program asks for them

Nine more files belong to the core of HMB. Read them after the short reading.
Under `protocol/`, `schema.py` encodes and decodes all message classes. Under `storage/`, `group_commit.py` syncs logs,
`log_segments.py` lists the segments of a log, `recovery/loading.py` opens a log after a stop or a crash, and
`recovery/checking.py` checks one batch. Under `coordinator/`, `group_runner.py` runs the steps of a group, and
`classic/group.py` is the group of the classic protocol. Under `client/producing/`, `accumulator.py` collects records
into batches, and `completion.py` handles the result of a batch.

After the core, read about topics (`broker/topics/`), retention and compaction (`storage/cleanup/`,
`storage/compaction/`), and transactions (`coordinator/transactions/`). Most other files support older versions,
handle failures, make HMB faster, or make it easier to use. The docstring of each folder lists its files in
reading order.

Each of the four tours below follows one kind of request through the code. Each line names one function. The lines are
in the order in which the broker or the client calls these functions. The test `tests/test_tours.py` sends real requests
and checks this order.

The Produce tour consists of the functions that handle a Produce request, in the order of their calls:
1. `broker/network/connection.py` `AcceptedConnection._serve` serves the requests of a client, one after another
2. `broker/network/requests.py` `Requests.next` waits for a frame: a length (`protocol/framing.py`), then its bytes
3. `broker/dispatch.py` `Dispatcher.begin` decodes the request, calls the handler and encodes the response
4. `protocol/connection.py` `ServerConnection.receive` decodes the request's header and body
5. `broker/handlers/produce.py` `_Appends.append` finds the log of one partition
6. `storage/batches/validation.py` `parse_produced` parses the header of each batch
7. `storage/log.py` `Log.append` prepares the batch (`batches/preparation.py`), and then appends it
8. `storage/batches/validation.py` `check_batch` refuses a batch that is damaged or that the topic does not allow
9. `storage/log.py` `Log.append_prepared` takes the lock, recognizes a batch sent twice, and assigns offsets
10. `storage/segment.py` `Segment.append` writes the batch to the end of the active segment
11. `storage/segment.py` `Segment.index_batch` adds an entry to each index after about every 4 KiB of batches
12. `storage/offset_index.py` `OffsetIndex.append` adds the entry, so that later reads find the batch

In step 1 of the Produce tour (the list above), `AcceptedConnection._serve` runs in a thread. `Server` starts one
thread for each connection (`broker/network/server.py`).

In step 3 of the Produce tour, `Dispatcher.begin` first checks the client's login (`broker/security/login.py`).
It then decodes the request, calls the handler, and encodes the response.

In step 4 of the Produce tour, `ServerConnection.receive` decodes a request. `request_class` in
`protocol/messages/__init__.py` finds the request's class by the API key. `RequestHeader` in
`protocol/headers.py` decodes the header. `Plan.decode` in `protocol/schema.py` decodes the fields.

The table `HANDLERS` contains the handler of each API (`broker/handlers/__init__.py`). The broker puts up to
three wrappers around each handler: `counted` counts the requests, `guarded` checks ACLs, and `throttled`
enforces quotas (`broker/lifecycle.py`).

The method `_Appends.append` (step 5 of the Produce tour) finds the topic (`broker/topics/registry.py`) and the
partition's log (`broker/topics/topic.py`). In `broker/handlers/produce.py`, `_Appends._parse` then parses the
batches (step 6), and `_append_to_log` appends them (step 7).

If the broker cannot append a batch, `put_error` writes an error code into the response (`broker/errors.py`).
The module `broker/transactional.py` handles batches that belong to a transaction.

In step 6 of the Produce tour, `RecordBatch.parse` decodes the header of a batch, but not the records
(`records/batch.py`).

An idempotent producer sends a batch again if it gets no response. In step 9 of the Produce tour,
`ProducerState.check` finds out whether the log already contains the batch (`storage/producer_state.py`). If not,
`RecordBatch.with_base_offset` writes the offset of the first record into the header of the batch. If the active
segment is full, `LogSegments.roll` starts a new segment (`storage/log_segments.py`).

`Segment.append` calls `DurableFile.write` (`storage/files/virtual.py`) to write a batch to a file. The offset
index and the time index (`storage/time_index.py`) call `IndexFile._append` (`storage/files/sorted_entries.py`)
to write an entry.

After step 12 of the Produce tour, `Watchers.wake_all` wakes the Fetch requests that wait for new records
(`storage/watchers.py`).

With acks=all, the broker sends the response only after `Log.flush` has written the records to disk
(`broker/deferred.py`, `storage/group_commit.py`). A client may send several requests before it reads a response. In
this case, the module `broker/network/gathering.py` sends several responses together.

The broker reads and decodes a Fetch request with the same functions as a Produce request: steps 1 to 4 of the
list above (the Produce tour). The Fetch tour begins after these steps.

A Fetch request does not have to list all its partitions, because the broker remembers them in a *fetch
session*.

The Fetch tour consists of the functions that handle a Fetch request, in the order of their calls:
1. `broker/handlers/fetch.py` `handle` reads each partition, and waits if too few bytes exist
2. `broker/fetch_sessions.py` `FetchSessions.begin` returns a `FetchContext` with the partitions to read
3. `storage/log.py` `Log._read` copies the log's offsets and its list of segments at one moment
4. `storage/log_reading.py` `find_records` selects the segment that contains the wanted offset
5. `storage/segment.py` `Segment.read` returns a region of the file that begins with the wanted batch
6. `storage/segment.py` `Segment.batches_at_or_after` searches the segment for the wanted batch
7. `storage/segment.py` `Segment.batches_from` reads batch headers, from the position that the index returns
8. `storage/offset_index.py` `OffsetIndex.lookup` returns the position of a batch at or before the wanted offset
9. `protocol/connection.py` `ServerConnection.respond` encodes the response as parts; one part is the region
10. `broker/network/gathering.py` `ResponseQueue.send` passes the parts to `send` (`sending.py`)
11. `broker/network/sending.py` `_send_region` asks the kernel to send the region (`sendfile`)

The handler of Fetch calls `FetchSessions.begin`, and then `long_poll` (`broker/long_poll.py`). `long_poll`
reads all requested partitions. If it finds too few bytes of records, it waits for new records and reads again.

`CachedPartition.log` finds the log of each requested partition (`broker/fetch_sessions.py`).
`_Fetch._set_records` then calls `Log.read`, which calls `Log._read` (step 3 of the Fetch tour).

On a first reading of the Fetch tour, you can skip the check of leader epochs (`broker/leader_epochs.py`), the
conversion for old clients (`broker/old_clients.py`), and the code for damaged segments
(`storage/cleanup/replacement.py`, `storage/recovery/read_checks.py`).

Steps 7 and 8 of the Fetch tour use code of two other modules. `storage/batches/headers.py` reads the headers of
batches, and `storage/files/sorted_entries.py` reads entries of the index.

After step 8 of the Fetch tour, `FetchContext.respond` creates the response (`broker/fetch_sessions.py`). The
handler returns the response to the dispatcher (`broker/dispatch.py`), which calls `ServerConnection.respond`
(step 9).

In step 9 of the Fetch tour, `ServerConnection.respond` encodes the fields of the response
(`protocol/schema.py`). It then adds four bytes with the length of the response (`protocol/framing.py`).

After step 9 of the Fetch tour, the dispatcher returns the encoded response to `AcceptedConnection._serve`
(`broker/network/connection.py`). This method calls `ResponseQueue.send` (step 10).

A Fetch response contains records, but usually no function of the broker reads the bytes of these records. In step 5 of
the Fetch tour, `Segment.read` returns a `FileRegion` (`storage/files/virtual.py`). A `FileRegion` stores the position
of the records in a file, and their size in bytes.

The handler of Fetch puts the `FileRegion` into the response's field `records`. The encoder
(`protocol/primitives.py`) does not read the region's bytes. Later, `_send_region` (`broker/network/sending.py`)
asks the kernel to send these bytes.

JoinGroup and SyncGroup belong to the *classic* group protocol, in which a member of the group assigns the
partitions. In the new protocol (KIP-848), the broker assigns the partitions.

The broker reads and decodes a JoinGroup or SyncGroup request in the same way as a Produce request. The next
list begins after the decoding, with the handler of JoinGroup.

The JoinGroup tour consists of the functions that handle JoinGroup and SyncGroup requests, in the order of their calls:
1. `broker/handlers/join_group.py` `handle` passes the request to the coordinator, and returns the response
2. `coordinator/groups.py` `GroupCoordinator.join` finds the group, or creates it
3. `coordinator/group_runner.py` `GroupRunner.step` holds the group's lock during one step of its state machine
4. `coordinator/classic/group.py` `ClassicGroup.join` selects the method for this kind of JoinGroup
5. `coordinator/classic/group.py` `ClassicGroup._join_first` answers with a new member id and MEMBER_ID_REQUIRED
6. `coordinator/classic/group.py` `ClassicGroup._add` adds the member, when it joins again with this id
7. `coordinator/classic/rebalance.py` `Rebalance.prepare` begins a rebalance: the group waits for its members
8. `coordinator/group_runner.py` `GroupRunner.wake` runs at the deadline of this wait
9. `coordinator/classic/group.py` `ClassicGroup.tick` removes expired members, and calls `Rebalance.tick`
10. `coordinator/classic/rebalance.py` `Rebalance.tick` finds that the deadline has passed
11. `coordinator/classic/rebalance.py` `Rebalance._complete_join` ends the wait
12. `coordinator/classic/rebalance.py` `Rebalance._begin_generation` queues a response for each member
13. `coordinator/group_runner.py` `WaitingCall.respond` passes the response to the waiting thread of a member
14. `broker/handlers/sync_group.py` `handle` receives the assignment that the group leader has computed
15. `coordinator/groups.py` `GroupCoordinator.sync` passes the assignment to the group, in one step
16. `coordinator/classic/group.py` `ClassicGroup.sync` checks that the member belongs to this generation
17. `coordinator/classic/rebalance.py` `Rebalance.sync` keeps the request until the assignment is stored
18. `coordinator/classic/rebalance.py` `Rebalance._store` queues a record that contains the assignment
19. `coordinator/group_runner.py` `GroupRunner._store_records` runs at the end of the step, without the group's lock
20. `coordinator/journal/writing.py` `Journal.write` writes the record to the topic `__consumer_offsets`
21. `coordinator/classic/rebalance.py` `Rebalance._assign` queues a response for each member, with its partitions
22. `coordinator/group_runner.py` `WaitingCall.respond` passes the response to the waiting thread of a member

In the JoinGroup tour, a new member sends two JoinGroup requests. For the first request, the broker runs
steps 1 to 5, and responds with a new member id. The second request contains this id. For this request, the
broker runs steps 1 to 4 and then step 6, which adds the member.

The state machine of a group sends no responses and writes no records. It only adds them to two lists. After
each step, `GroupRunner._carry_out_effects` calls `tick`, which handles deadlines and can add to both lists.

`GroupRunner._carry_out_effects` then passes the responses to the waiting threads, and adds the records to a
queue. `Journal.write` writes the queued records to the topic `__consumer_offsets`.

Step 18 of the JoinGroup tour queues a record and a function `on_stored` (class `Write` in
`coordinator/group.py`). Step 20 writes the record. After that, `GroupRunner._store_records` takes the group's
lock and calls `on_stored`. This function calls `Rebalance._assign` (step 21).

A JoinGroup or SyncGroup request often has to wait for other members. The thread that handles the request waits
in `WaitingCall.wait` until the response is ready (`coordinator/group_runner.py`).

In step 2 of the JoinGroup tour, the coordinator rejects the member if its metadata, or the metadata of all
members together, is too large (`coordinator/member_memory.py`). Otherwise, the coordinator finds or creates the
group (`coordinator/group_table.py`).

A group of the new protocol (KIP-848) can have members that use the classic protocol. `GroupConverter` handles
the JoinGroup and SyncGroup requests of these members (`coordinator/migration/converter.py`).

`ClassicState` contains the members of a classic group (`coordinator/classic/state.py`). `PendingMembers`
contains the member ids that no client has used yet (`coordinator/classic/pending_members.py`).

`ClassicGroup._join_first` (step 5 of the JoinGroup tour) handles two special cases. A client with JoinGroup
version 0 to 3 joins with its first request (`coordinator/classic/older_clients.py`). A restarted static member
gets a new member id (`coordinator/classic/static_members.py`).

A table contains the allowed state changes of a classic group (`coordinator/classic/states.py`). The class of
this table is `StateTable` (`state_table.py`).

By default, a new classic group waits at least 3 s for more members (`coordinator/classic/initial_delay.py`). In
step 8 of the JoinGroup tour, a timer (`coordinator/group_timer.py`) calls `GroupRunner.wake` after this wait.

If a classic group already has members, its next rebalance usually does not wait until the deadline. When the
last member joins, `Rebalance.complete_join_if_all_joined` starts the next generation.

`ClassicMembers` elects the leader of a classic group. It also selects the protocol with which the leader
assigns partitions, for example `range` (`coordinator/classic/members.py`).

In step 18 of the JoinGroup tour, `encode_group` encodes a record with the partitions of all members
(`coordinator/classic/record.py`). The module `coordinator/journal/records.py` declares the fields of this
record.

In step 20 of the JoinGroup tour, `Journal.write` calls `Log.append_from_coordinator`. This method calls
`Log.append_prepared`, which is also step 9 of the Produce tour.

The Producer.send tour consists of the functions that send a record to the broker, in the order of their calls:
1. `client/producing/producer.py` `Producer.send` checks a record, in the application's thread
2. `client/producing/partitioner.py` `by_murmur2` chooses the partition, from a hash of the record's key
3. `client/producing/accumulator.py` `Accumulator.append` encodes the record into the partition's newest batch
4. `client/producing/sender.py` `LeaderRouter._route` gives the partition's queue to the sender thread of its leader
5. `client/producing/sender.py` `Sender.run` takes the batches that must be sent; each broker has one sender thread
6. `client/producing/encoding.py` `Encoding.encode` compresses a batch, and puts its header before the records
7. `client/connection.py` `Connection.post_all` sends the request without waiting for its response
8. `client/producing/sender.py` `Sender._receive` reads the response
9. `client/producing/completion.py` `BatchCompletion.deliver` completes a batch that the broker has written
10. `client/producing/delivery.py` `BatchResult.complete` wakes the threads that wait for the result

The Producer.send tour names one function in each step. The next list names other functions that take part in
these steps. You do not need them when you read the code for the first time:
- Step 1, `Producer.send`: `checked_size` checks the record (`client/producing/record_checks.py`). `Cluster.last_known`
  returns the partitions of the topic (`client/metadata.py`). The setting `partitioner` selects the function that
  chooses the partition (`partitioner_of` in `client/producing/partitioner.py`).
- Step 2, `by_murmur2` returns None if the key is None. `Accumulator._batch_with_room` then uses the partition
  of the previous record without a key, or calls `PartitionQueues.choose` (`client/producing/queues.py`).
- Step 3, `Accumulator.append`: `PartitionQueues.of` returns the queue of the partition (`client/producing/queues.py`).
  If the producer's memory is full, `BufferMemory.wait` waits (`client/producing/memory.py`). `RecordsBuilder.append`
  encodes the record into the bytes of the batch (`records/builder.py`, `records/record.py`).
- Step 4, `LeaderRouter._route`: `Accumulator._open` adds a new batch to its queue, and may wake the router's thread.
  `LeaderRouter.run` waits until the batch is due, and then calls `_route`. `Cluster.leader` returns the leader
  (`client/metadata.py`).
- Step 5, `Sender.run`: `Accumulator.wait_for_batches` waits until a batch is due, and `PartitionQueue.take_due`
  selects it (`client/producing/batch.py`). Then `BatchCompletion.sendable` removes the batches of an aborted
  transaction (`client/producing/completion.py`).
- Still in step 5, `Sender._send` calls `Sender._encode` (step 6) for each batch, groups the batches into
  requests (`requests` in `client/producing/encoding.py`), and calls `Sender._post`. The object in the
  sender's field `_guarantee` returns the producer id, and adds the partitions to the transaction
  (`client/producing/idempotence.py`, `client/producing/transactions/manager.py`).
- Step 6, `Encoding.encode`: `assign_sequence` assigns the sequence numbers of an idempotent producer
  (`client/producing/idempotence.py`). `wrap_records` compresses the encoded records, and puts the header of the batch
  before them (`records/batch.py`).
- After step 6, `Sender._post` calls `produce_request`, which builds a request from the batches
  (`client/producing/encoding.py`), and then calls `Connection.post_all` (step 7).
- Step 7, `Connection.post_all`: before its first request, `Connection._open` connects to the broker and requests its
  versions. `ClientConnection.request` encodes the request (`protocol/connection.py`, `protocol/schema.py`).
  `SocketStream.write` writes the bytes to the socket (`client/socket_stream.py`).
- Step 8, `Sender._receive`: `Connection._read` calls `read_frame` (`protocol/framing.py`), which reads from the
  `SocketStream`. `ClientConnection.receive` then decodes the response (`protocol/connection.py`).
- After step 8, `Sender._complete` calls `BatchCompletion.handle_response`, which looks for an error in the response.
  Without an error, it calls `BatchCompletion.deliver` (step 9).
- After step 9, `ProducerBatch.deliver` passes the offset to the result of the batch (`client/producing/batch.py`). The
  sender counts the batches and the requests (`client/producing/metrics.py`).

The docstring of `client/producing/accumulator.py` lists the three cases in which a batch of a producer is *due*.

A producer has a queue of batches for each partition, and one sender thread for each broker. The producer's
*router* thread waits until the first batch of a new queue is *due*: the producer must send this batch, for
example because the batch is full. The router thread then *seals* the batch, so that it accepts no more records.
The router thread looks up the partition's leader in the metadata (`client/metadata.py`), and gives the queue to
the sender thread for the leader. Later batches are sealed when they are full, or when the sender thread takes
them.

Before its first batch, an idempotent producer requests a producer id (`client/producing/idempotence.py`).

A `PartitionQueue` contains the batches of one partition (`client/producing/batch.py`). Its field `in_flight` is the
number of batches whose responses have not arrived. Its field `window` is the largest allowed value of this number.
"""

from importlib import import_module

# Type checkers treat TYPE_CHECKING as true, and read the imports below. Python skips these imports, so that `import
# hmb` is fast. Importing TYPE_CHECKING from the module `typing` would take 3 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from hmb.broker.config.keys import ConfigError
    from hmb.broker.network.listeners import BindError
    from hmb.client import (
        Admin,
        AtTime,
        ClosedByBroker,
        ConnectionFailed,
        Consumer,
        ConsumerRecord,
        DeserializationError,
        FromStart,
        HmbError,
        KafkaError,
        NewTopic,
        Producer,
        SettingError,
        ShareConsumer,
        ShareRecord,
        SimpleConsumer,
        TopicPartition,
    )
    from hmb.storage.state.identity import DataDirectoryError
    from hmb.testing.embedded import Broker
    from hmb.testing.errors import BrokerNotRunning, FaultError, NameNotFound, RequestsMissing

__all__ = [
    "Admin",
    "AtTime",
    "BindError",
    "Broker",
    "BrokerNotRunning",
    "ClosedByBroker",
    "ConfigError",
    "ConnectionFailed",
    "Consumer",
    "ConsumerRecord",
    "DataDirectoryError",
    "DeserializationError",
    "FaultError",
    "FromStart",
    "HmbError",
    "KafkaError",
    "NameNotFound",
    "NewTopic",
    "Producer",
    "RequestsMissing",
    "SettingError",
    "ShareConsumer",
    "ShareRecord",
    "SimpleConsumer",
    "TopicPartition",
]
__version__ = "0.1.0"

_MODULES = dict.fromkeys(__all__, "hmb.client") | {
    "BindError": "hmb.broker.network.listeners",
    "Broker": "hmb.testing.embedded",
    "BrokerNotRunning": "hmb.testing.errors",
    "ConfigError": "hmb.broker.config.keys",
    "DataDirectoryError": "hmb.storage.state.identity",
    "FaultError": "hmb.testing.errors",
    "NameNotFound": "hmb.testing.errors",
    "RequestsMissing": "hmb.testing.errors",
}


def __getattr__(name: str) -> object:
    """Import a name when a program first uses it, so that `import hmb` alone takes almost no time."""
    if name not in _MODULES:
        raise AttributeError(f"module 'hmb' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return all public names of `hmb`, including the names that are not imported yet."""
    return [*__all__, "__version__"]
