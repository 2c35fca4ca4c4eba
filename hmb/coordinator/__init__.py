r"""Coordinators: consumer groups, committed offsets, transactions and producer ids.

A *coordinator* keeps state for many clients that must agree with each other: the members of a group, or the partitions
of a transaction. Each coordinator is a state machine. A request or the passing of time is an event, and the event leads
to a new state, to responses, and to records that must be stored.

The state lives in memory, and a compacted topic stores it: `__consumer_offsets` for groups and their offsets,
`__transaction_state` for transactions. This topic is the *journal* of its coordinator. After a restart, the coordinator
reads the newest record of each key and has its state again::

    handler (hmb/broker/handlers)
      | request
    groups.py                 finds the group in the table (group_table.py)
      |
    shared_group.py           takes the group's lock, wakes waiting threads, writes records
      |                                          \
    classic/ or modern/       the state machine    journal/      the queue of the partition, one sync for many commits
      no threads, clocks, disks                      |
                                                   hmb/storage   the log of __consumer_offsets

For example, a consumer commits offset 42 of partition weather-0. `GroupCoordinator.begin_commit` takes the lock of the
group and asks the group whether the member is allowed to commit. The journal adds one record to the queue of partition
17 of `__consumer_offsets`. The lock is released, and the thread waits until the record is on disk. Only then does a
fetch of the committed offset return 42.

Our names:

- A *step* is one change of a group under its lock.
- A *write* is a list of records that belong together, with the step that follows when they are stored.
- A *pending* commit is in the journal's queue and is not yet stored.

Read in this order:

- `classic/`            the classic group protocol; `states`, then `rebalance`, are part of the short reading
- `group`               the interface that both kinds of groups share
- `shared_group`        one group, shared by the threads of many connections
- `group_table`         the table of groups
- `groups`              all requests for groups
- `offsets`             the committed offsets in memory
- `offset_manager`      the committed offsets in memory and in the journal
- `journal/`            the queue, the shared sync, and the formats of records
- `transactions/`       the transaction coordinator
- `modern/`             the group protocol of KIP-848

A first reading can skip the other modules. `journal_decoder` prints records as JSON. Time is in `group_timer` and
`group_expiry`. Limits are in `member_room` and `known_names`. `group_listing`, `cluster_topics` and `producer_ids` are
small and independent.

Limits: one broker coordinates all groups and transactions, so no coordinator moves to another broker.
"""
