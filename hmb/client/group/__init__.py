"""Group membership: how the consumers of a group agree who reads which partition.

The problem: several consumers share the partitions of a topic. Each partition must have exactly one reader, also when
consumers start, stop or crash. One broker, the group's *coordinator*, decides who is a member. Two protocols exist.

In the *classic* protocol all members meet at a barrier, and one of them, the leader, assigns the partitions::

    member                                 coordinator
    JoinGroup(subscription)        ----->  collects all members
                                   <-----  generation 7, you are the leader, members A and B
    SyncGroup({A: [0], B: [1]})    ----->  collects all members
                                   <-----  your assignment: [0]
    Heartbeat, Heartbeat, ...      ----->  no error, until the next rebalance

In the *consumer* protocol (KIP-848) the coordinator assigns the partitions itself. One request, the heartbeat, carries
the subscription and the owned partitions of the member, and its response carries the assignment.

The classic protocol and the consumer protocol look the same to the consumer. The consumer polls its membership, and the
membership calls `on_assigned`, `on_revoked` and `on_lost`.

Read in this order:

1. `interface`: settings, identity, and the listener of a rebalance.
2. `member` and `member_states`: what every member does, and the tables of states.
3. `classic_member`: the member of the classic protocol.
4. `assignors`: the functions that assign partitions.
5. `membership`: the threads that drive a member.
6. `commits`: committed offsets.

These modules can be skipped in a first reading: `consumer_member` (the member of the consumer protocol),
`member_metadata` and `offset_messages` (wire formats) and `errors` (messages for the user).
"""
