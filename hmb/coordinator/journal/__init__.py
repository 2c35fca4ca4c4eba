"""Journals store the changes of the coordinators: changes of groups, of transactions and of share-partitions.

A coordinator writes each change that must survive a restart to its journal, a topic with several partitions:
    topic                  contains                               the id of an entry is
    __consumer_offsets     groups and their committed offsets     a group id
    __transaction_state    transactions                           a transactional id
    __share_group_state    the states of share-partitions         the name of a share-partition

Each entry of a journal has an id, for example a group id. The hash of the id selects the partition of the journal
that contains the entry. HMB and Kafka use the same hash, so each of them finds the entries that the other has written.

A disk can sync about a thousand times a second, so one sync for each committed offset would be slow. Commits
that arrive at the same time therefore usually share one batch and one sync. This technique is called *group
commit*.

The journal has two methods for group commit:
    enqueue   adds records to the queue of a journal partition. The method does no I/O, so a thread can call
              it even if the thread holds the lock of a group.
    write     returns when the records are written. Each thread that calls `write` waits for the `write_lock`
              of the partition. The thread that gets the lock writes all queued records, including the records
              of other threads, usually as one batch. When the other threads get the lock, their records are
              already written.

The setting `log.flush.acks.all` decides whether the journal syncs each write. If it is true (the default),
the journal syncs the write. If it is false, the records are in the log's file, but may not be on the disk
yet.

An entry of the queue can contain a function `apply`, which changes the coordinator's state in memory. After a
successful write, the journal calls these functions in the order of the queue.

A thread writes the queue entries to the log in batches. If the records of the next queue entry do not fit into the
current batch, the thread starts a new batch. Each queue entry that belongs to a transaction gets a batch of its own.

For example, three threads queue one commit each while a sync is running. After the sync, one of the three
threads writes all three commits as one batch, and syncs once. The other two threads have nothing left to write.

Read the modules of this folder in this order:
- `partition`   one partition with its queue; `QueuedRecords` is an entry of the queue
- `writing`     the journal with its methods enqueue, write and load
- `topic`       all partitions of the topic, and the hash that selects one
- `records`     the keys and values of `__consumer_offsets`
- `loading`     finds the newest record of each key when the broker starts

On a first reading, skip `records` and `loading`. The records of `__transaction_state` are in transactions/records.py.

Source: Kafka's `CoordinatorRuntime`, `GroupCoordinatorService`, `TransactionStateManager`.
"""
