"""HMB: a Kafka-compatible message broker that you can read.

A message broker stands between those who produce messages and those who consume them.  Kafka's idea, and HMB's, is that
it is little more than a log: producers append batches of records at its end, consumers read from any offset, and the
bytes are the same on the wire and on disk.

The way of a Produce, one call a hop:

1. `broker/network/server.py`   accepts a connection and gives it a thread
2. `broker/network/connection.py` `Connection._serve`: reads a frame, dispatches it, sends the answer
3. `protocol/framing.py`        `read_frame`: a length, then that many bytes
4. `broker/dispatch.py`         `Dispatcher.begin`: has it decoded, finds the handler, has the answer encoded
5. `protocol/connection.py`     `ServerConnection.receive`: header and body (fields by `protocol/schema.py`,
                                classes in `protocol/messages/produce.py`)
6. `broker/handlers/produce.py` `handle`: message -> log (found by `broker/topics/registry.py`) -> message
7. `storage/log.py`             `Log.append`: has the batch checked (`storage/preparation.py`), gives it its offsets
8. `storage/segment.py`         `Segment.append`: one write at the end of the active segment
9. `storage/offset_index.py`    `OffsetIndex.append`: every 4 KiB, where to find it again

The answer goes back the same way, when the requests that came together have all got here (`broker/network/gathering.py`):
`connection._finish` asks for it, with acks=all it waits in `Log.flush` until the records are on disk, where producers
that come at the same time share one sync (`storage/group_commit.py`), `ServerConnection.respond` encodes it,
`framing.frame` puts the length in front, and `sending.send` writes it to the socket.

A Fetch goes the same way to 6, `broker/handlers/fetch.py`, and then through `Log.read` (`storage/log_reading.py`),
`Segment.read` and `OffsetIndex.lookup` to a region of the segment's file, which `sending.send` passes to the kernel
(sendfile).  Where nothing has come yet, it waits on its logs (`storage/watchers.py`).

Groups live in `hmb/coordinator`.  A JoinGroup goes from 6, `broker/handlers/join_group.py`, through `groups.py` (which
group) and `shared_group.py` (its lock, its waiting threads) to `classic_group.py` and `classic_rebalance.py`, the state
machine.  An OffsetCommit goes through `groups.py` to `offset_manager.py` and `journal.py`, which appends it to
`__consumer_offsets`, a log as any other; the answer waits for the disk (`broker/deferred.py`).

Transactions live there as well.  An EndTxn goes from 6, `broker/handlers/end_txn.py`, to `transactions.py`, which asks
`transaction.py` what it comes to, has that written to `__transaction_state` by `journal.py`, and then the markers into
all partitions by `transaction_markers.py`.

The house:

- `hmb.protocol`     bytes <-> messages; no I/O, imports nothing of hmb
- `hmb.records`      record batches and the older message sets; compression, checksums
- `hmb.storage`      log, segments, indexes, recovery; the data directory is Kafka's
- `hmb.coordinator`  consumer groups, their committed offsets, transactions, producer ids
- `hmb.broker`       network, dispatch, one handler per API
- `hmb.client`       connection, producer, consumer
- `hmb.cli`          the commands (in the folder `cli/`)
- `hmb.bench`        measurements beside Kafka (in the folder `bench/`)

Imports go one way, left to right: protocol, records, storage, coordinator, broker; client uses the first two.
"""

from importlib import import_module

TYPE_CHECKING = False  # As in typing. Ctrl-C prints a traceback until `hmb` can handle it, and typing takes 3 ms.
if TYPE_CHECKING:
    from hmb.broker import Broker
    from hmb.client import (
        Admin,
        AtTime,
        Consumer,
        ConsumerRecord,
        FromStart,
        KafkaError,
        NewTopic,
        Producer,
        SimpleConsumer,
        TopicPartition,
    )

__all__ = [
    "Admin",
    "AtTime",
    "Broker",
    "Consumer",
    "ConsumerRecord",
    "FromStart",
    "KafkaError",
    "NewTopic",
    "Producer",
    "SimpleConsumer",
    "TopicPartition",
]
__version__ = "0.1.0"

_HOMES = dict.fromkeys(__all__, "hmb.client") | {"Broker": "hmb.broker"}


def __getattr__(name: str) -> object:
    """Import the names when they are first used: `import hmb` alone costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hmb' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
