r"""The coordinators of the broker, which manage consumer groups, committed offsets, transactions and producer ids.

A *coordinator* is a part of a broker. A coordinator keeps state that several clients share, for example the members of
a consumer group. Each coordinator is a state machine: an event changes the state. The events are the requests of
clients and the deadlines that pass. After an event, the broker may have to send responses and to store records.

A coordinator keeps its state in memory. If a change must survive a restart, the coordinator writes a record of the
change to a topic, its *journal*. Other changes need no record. For example, each heartbeat of a member moves the end of
the member's session to a later time. If a heartbeat also changes the group (KIP-848), the coordinator writes a
record. The broker has three journals:
    __consumer_offsets     groups and their committed offsets     compacted
    __transaction_state    transactions                           compacted
    __share_group_state    the states of share-partitions         not compacted: snapshots, then updates

For each share-partition, the broker writes a *snapshot*, which contains the complete state. It then writes, by
default, 500 *updates*, which contain only changes. After these updates, it writes the next snapshot.

The broker needs all updates after the newest snapshot of a share-partition. Compaction would keep only the
newest update, so the broker does not compact `__share_group_state`. It deletes only records that are older than
the newest snapshots.

After a restart, the broker restores the coordinators' state from the journals. From a compacted journal, it
uses only the newest record of each key. (HMB calls a coordinator's topic a *journal*. Kafka has no common word
for such topics.)

Producer ids have no journal: producer_ids.py reserves them in a file, in blocks of 1,000 ids.

A request for a group passes through these modules:
    handler (hmb/broker/handlers)
      | request
    groups.py                  finds the group (for offsets, offset_requests.py does this)
      | request
    group_runner.py            takes the group's lock, wakes waiting threads
      |   \ request
      |    classic/, consumer/, share/ or streams/    changes the group in memory, creates records
      | records
    journal/                   puts the records into a queue; many commits share one sync
      | records
    hmb/storage                appends the records to the log of __consumer_offsets

For example, a consumer commits offset 42 of partition weather-0. `OffsetRequests.begin_commit` takes the lock of the
group and asks the group whether the member is allowed to commit. The journal adds one record to the queue of partition
17 of `__consumer_offsets`. The thread that handles the request then releases the lock and waits until the record is on
disk. A client can fetch the committed offset 42 only after the record is on disk.

Words that have a special meaning in this package:
- A *step* is one change of a group's state. The thread that runs the step holds the group's lock.
- A *write* is a set of records that the journal stores together. The coordinator calls the function
  `on_stored` of the write, as a step, after the journal has stored the records or has failed to store them.
- A *queued* record waits in the queue of the journal and is not on disk yet (`QueuedRecords`).
- *Pending* has two meanings, as in Kafka. A *pending* member id was sent to a client, but the client has not
  joined with this id yet. A *pending* offset belongs to a transaction that is still open.
- A *call* is a JoinGroup or SyncGroup request that waits for its response.
- A *session* is the time in which the next request of a member must arrive, for example 45 s.

Read the modules and folders of this package in this order:
- `classic/`            the classic group protocol; begin with its `states` and `rebalance`
- `group`               the interface that all kinds of groups share
- `group_runner`        runs the steps of one group for the threads of many connections
- `group_table`         the table of all groups in memory
- `groups`              handles the requests of members, and restores the groups from the journal
- `offset_requests`     handles the requests for committed offsets
- `offsets`             the committed offsets in memory
- `offset_manager`      the committed offsets in memory and in the journal
- `journal/`            the queue, the shared sync, and the formats of records
- `transactions/`       the transaction coordinator
- `consumer/`           the group protocol of KIP-848: consumer groups
- `modern/`             what the three newer kinds of groups have in common: consumer, share and streams groups
- `migration/`          the change of a group from the classic protocol to KIP-848, or back
- `share/`              share groups: several members read one partition, and acknowledge each record
- `streams/`            streams groups: the broker assigns the tasks of a Kafka Streams application

On a first reading, skip the following modules. `journal_decoder` prints the records of a journal as JSON. `group_timer`
wakes groups at their deadlines. `group_expiry` decides which committed offsets expire. `member_memory` and
`known_names` limit the memory that the broker uses for clients. `group_keys` is the table of the record types of
`__consumer_offsets`. `cluster_topics` and `producer_ids` are small and do not depend on the other modules.

Limits: HMB runs as one broker, which coordinates all groups and all transactions. A coordinator therefore never moves
to another broker.
"""
