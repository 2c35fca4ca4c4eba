"""The classic group protocol: a rebalance that all members of a group pass together.

The members choose among themselves who reads which partitions. The coordinator does not understand their metadata. It
collects the members, elects a leader, sends the metadata of all members to the leader, and distributes the assignment
that the leader returns::

    member A                       coordinator                        member B
    JoinGroup      ------------->  Empty -> PreparingRebalance
                                                        <-----------  JoinGroup
    generation 1   <-------------  CompletingRebalance  ----------->  generation 1
    (A is the leader and receives the metadata of A and B)
    SyncGroup      ------------->  stores the assignment
    (with the assignment)                               <-----------  SyncGroup
    assignment     <-------------  Stable               ----------->  assignment
    Heartbeat      ------------->                       <-----------  Heartbeat

A *generation* is one agreed list of members. Its number grows with each rebalance, and a request that contains an older
number is rejected. For example, A and B form generation 1 and C joins later. The responses to the next heartbeats of A
and B are REBALANCE_IN_PROGRESS, both send JoinGroup again, and A, B and C form generation 2.

Read in this order:

- `states`       the states, the events, and the table that drives the group
- `members`      the members, the choice of the leader and of the protocol
- `rebalance`    the barrier with its two halves, and all time limits
- `group`        the requests: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and the check of OffsetCommit
- `record`       the group as a record of `__consumer_offsets`

A first reading can skip `record` and, in `group`, the static members of KIP-345 (`_replace`).

Source: Kafka's `ClassicGroup`; KIP-62, KIP-134, KIP-345, KIP-394, KIP-429.
"""
