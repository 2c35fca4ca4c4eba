"""The journals of the coordinators: `__consumer_offsets` for groups, `__transaction_state` for transactions.

A coordinator writes each change to its journal. A group belongs to one partition of the topic, by the hash of its id,
and so does a transactional id. The hash is Kafka's, so a data directory works with both brokers.

A disk syncs about a thousand times a second, and a committed offset is a record of some hundred bytes. Commits that
arrive at the same time therefore share one batch and one sync. This *group commit* has two calls::

    enqueue   adds records to the queue of the partition. It does no I/O, so a caller can hold the lock of a group.
    write     waits for the `turn` lock of the partition. The thread that gets it writes all queued records as one
              batch, syncs, and calls `apply` of each in the order of the queue. The other threads then return.

For example, three consumers commit while a sync is running. The first of their threads gets the lock next. It writes
the three commits as one batch with one sync, and the other two threads return without I/O.

Read in this order:

- `partition`   one partition with its queue; `Pending` is an entry of the queue
- `writing`     the journal: enqueue, write, load
- `topic`       all partitions of the topic, and the hash that selects one
- `records`     the keys and values of `__consumer_offsets`
- `loading`     the newest record of each key, when the broker starts

A first reading can skip `records` and `loading`. The records of `__transaction_state` are in transactions/records.py.

Source: Kafka's `CoordinatorRuntime`, `GroupCoordinatorService`, `TransactionStateManager`.
"""
