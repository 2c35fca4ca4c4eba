"""Share groups: several members read one partition together, and acknowledge each record (KIP-932).

In a consumer group, a partition has one owner, and the group stores one committed offset for the partition. One slow
record therefore delays all later records of its partition.

A *share group* works like a queue. Several members read the same partition, and the broker delivers each record to one
of them. This member *acquires* the record: it holds a lock on the record for a limited time. If the member crashes, the
broker delivers the record to another member.

A member of a share group acknowledges each record separately. It accepts the record, releases it (the broker delivers
it again) or rejects it (the group never delivers it again). A member that needs more time can renew its lock on the
record.

A partition that a share group reads is a *share-partition*. This package has two parts. The first part handles
heartbeats, and assigns partitions to the members of a group. The second part handles fetches and acknowledgements, and
stores the delivery state of each record. Each arrow points from a request or a module to the module that is called:
    a heartbeat                      ->  requests    ->  group
    a fetch or an acknowledgement    ->  partitions  ->  in_flight
                                         partitions  ->  coordinator   stores the states in `__share_group_state`

Another package, `hmb.broker.share`, reads the log when a member fetches. It also contains the share sessions: the state
that the broker stores between two fetches of a member.

For example, the members A and B read orders-0. A acquires the records 100 to 109, accepts 100 to 104, and crashes. The
connection of A ends, so the broker releases 105 to 109 immediately: their state becomes Available again. Then B
acquires 105 to 109. This is the second delivery of these records, so their delivery count becomes 2.

If a member hangs instead of crashing, its connection stays open. The broker then releases the member's records when
their acquisition locks time out, by default 30 s after the member has acquired the records.

If a member crashes or releases a record, the broker delivers the record again. A group can therefore receive a record
more than once. It can also receive a record after other records that have greater offsets. If no member accepts the
record in five deliveries (`share.delivery.count.limit`), the broker archives the record: the group never delivers it
again.

Read the modules of this folder in this order:
- `states`            the delivery states of a record, and the table that defines them
- `acknowledgement`   the acknowledgements in a request
- `in_flight`         the records in flight of one share-partition: a state machine without threads and disks
- `partitions`        the share-partitions, shared by the threads of many connections
- `stored_state`      the stored state of one share-partition
- `coordinator`       the share coordinator, which stores the states
- `assignor`          which members read which partitions
- `group`             one share group: its members, and the partitions that the broker assigns to them
- `requests`          the requests of members and of administrators

On a first reading, skip the following modules. `state_records` and `group_records` describe the records that restore
share groups after a restart. `group_state` and `member` create the records of a group. `settings` contains the settings
of a group, and `description` builds the response to ShareGroupDescribe.

Source: KIP-932; Kafka's `SharePartition`, `ShareGroup`, `ShareCoordinatorService`.
"""
