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
- `rebalance`    the barrier with its two halves, SyncGroup, Heartbeat, and all time limits
- `group`        the requests that change the members: JoinGroup and LeaveGroup; the check of OffsetCommit

A first reading can skip the rest:

- `initial_delay`      the first rebalance waits for further members (KIP-134)
- `pending_members`    a client requests a member id before it joins (KIP-394)
- `static_members`     a client that restarts keeps its partitions (KIP-345)
- `older_clients`      the differences between the versions of JoinGroup and SyncGroup
- `record`             the group as a record of `__consumer_offsets`
- `settings`           the broker settings of a group

Source: Kafka's `ClassicGroup`; KIP-62, KIP-134, KIP-345, KIP-394, KIP-429.
"""
