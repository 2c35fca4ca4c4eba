"""The classic group protocol: a rebalance waits for all members, and one member assigns the partitions.

One member, the leader, decides which member reads which partitions. Each member sends metadata, for example its list of
topics, to the coordinator. The coordinator elects the leader, and sends the metadata of all members to it.

The coordinator does not interpret the metadata, with two exceptions. Before committed offsets expire or are deleted,
the coordinator reads the topic names in the metadata (subscriptions.py). It also reads the metadata when the group
becomes a KIP-848 group (migration/upgrade.py).

The coordinator also chooses an assignor that all members support, for example "range". (In JoinGroup, an assignor is
called a *protocol*.) The leader returns the assignment, and the coordinator sends each member its part. In the next
drawing, PreparingRebalance, CompletingRebalance and Stable are states of the group:
    member A                       coordinator                        member B
    JoinGroup      ------------->  PreparingRebalance
                                                        <-----------  JoinGroup
    generation 1   <-------------  CompletingRebalance  ----------->  generation 1
    (A is the leader and receives the metadata of A and B)
    SyncGroup      ------------->  stores the assignment
    (with the assignment)                               <-----------  SyncGroup
    assignment     <-------------  Stable               ----------->  assignment
    Heartbeat      ------------->                       <-----------  Heartbeat

Each rebalance starts a new *generation* of the group: a fixed list of members, with a number. The number increases with
each generation.

For example, members A and B form generation 1, and C joins later. A rebalance begins. A and B each send a heartbeat
with generation 1, and receive the error REBALANCE_IN_PROGRESS. Both then send JoinGroup again, and A, B and C form
generation 2. From then on, the coordinator rejects a request with generation 1 (ILLEGAL_GENERATION).

Read the modules of this folder in this order:
- `states`       the states of a group, the events, and the table of all transitions
- `members`      the members of a group, and how the coordinator chooses the leader and the protocol
- `state`        the members, generation and protocol of one group, and the effects of a step
- `rebalance`    decides when the next generation starts, and what its members receive
- `group`        handles the requests, and decides who is a member

On a first reading, skip these modules:
- `initial_delay`      the first rebalance of an empty group waits for further members (KIP-134)
- `pending_members`    a client requests a member id before it joins (KIP-394)
- `static_members`     a client that restarts keeps its partitions (KIP-345)
- `older_clients`      the differences between the versions of JoinGroup and SyncGroup
- `subscriptions`      the topics that the members read
- `record`             the group as a record of `__consumer_offsets`
- `description`        builds the response to DescribeGroups
- `settings`           the broker settings for classic groups

Source: Kafka's `ClassicGroup`; KIP-62, KIP-134, KIP-345, KIP-394, KIP-429.
"""
