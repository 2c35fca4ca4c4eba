"""Journals store the changes of the coordinators: changes of groups, of transactions and of share-partitions.

A coordinator writes each change that must survive a restart to its journal, a topic with several partitions:
    topic                  contains                               the id of an entry is
    __consumer_offsets     groups and their committed offsets     a group id
    __transaction_state    transactions                           a transactional id
    __share_group_state    the states of share-partitions         the name of a share-partition

Each entry of a journal has an id, for example a group id. The hash of the id selects the partition of the journal that
contains the entry. HMB uses the same hash as Kafka, so both brokers can work with the same data directory.

A disk can sync about a thousand times a second. A committed offset is a record of only some hundred bytes, so
one sync for each commit would be slow. Commits that arrive at the same time therefore usually share one batch
and one sync. This technique is called *group commit*. The journal has two methods for it:
    enqueue   adds records to the queue of a partition. It does no I/O, so a thread can call it while it holds the
              lock of a group.
    write     returns when the records are written. It first waits for the partition's `write_lock`. The thread that
              gets the lock writes all queued records, also those of other threads, usually as one batch. It syncs
              the batch if `log.flush.acks.all` is true (the default). If it is false, the records are written to
              the log's file, but the disk may not have them yet. Then the thread calls the function `apply` of
              each queue entry, in the order of the queue: it changes the coordinator's state in memory. The other
              threads find that their records are written, and return at once.

A thread writes the queue entries to the log in batches. If the records of the next queue entry do not fit into the
current batch, the thread starts a new batch. Each queue entry that belongs to a transaction gets a batch of its own.

For example, three consumers commit offsets while a sync is running, so their three threads wait for the lock. One
thread gets the lock, and writes all three commits as one batch with one sync. The other two threads then return.

Read the modules of this folder in this order:
- `partition`   one partition with its queue; `QueuedRecords` is an entry of the queue
- `writing`     the journal with its methods enqueue, write and load
- `topic`       all partitions of the topic, and the hash that selects one
- `records`     the keys and values of `__consumer_offsets`
- `loading`     finds the newest record of each key when the broker starts

On a first reading, skip `records` and `loading`. The records of `__transaction_state` are in transactions/records.py.

Source: Kafka's `CoordinatorRuntime`, `GroupCoordinatorService`, `TransactionStateManager`.
"""
