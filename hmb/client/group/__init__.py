"""Group membership: how the consumers of a group divide the partitions among themselves.

The problem: several consumers of a group read a topic together. Exactly one consumer must read each partition, even
when consumers start, stop or crash. One broker, the group's *coordinator*, knows which consumers are members of the
group. The members and the coordinator use one of two protocols.

In the *classic* protocol, the coordinator waits until all members have joined. Then one of the members, the leader,
assigns the partitions:
    member                                 coordinator
    JoinGroup(subscription)        ----->  waits until all members have joined
                                   <-----  generation 7, you are the leader, members A and B
    SyncGroup({A: [0], B: [1]})    ----->  waits for the leader's assignment
                                   <-----  your assignment: [0]
    Heartbeat, Heartbeat, ...      ----->  no error, until the next rebalance

In the *consumer* protocol (KIP-848), the coordinator itself assigns the partitions. A member sends only one kind of
request, the heartbeat. The heartbeat contains the member's subscription and the partitions that the member owns. The
response contains the partitions that the member must own next.

The code of the consumer is the same for the classic protocol and for the consumer protocol. `Consumer.poll`
calls `GroupMembership.poll`. If the partitions of the consumer change, `GroupMembership.poll` calls these
methods of the consumer:
- `on_assigned`: the consumer gets new partitions.
- `on_revoked`: the consumer must give up partitions. It still owns them, and can commit their offsets.
- `on_lost`: the consumer has lost partitions. Other consumers may already own them.

Read the modules in this order:
1. `interface`: the settings and the identity of a member, and the callbacks of a rebalance.
2. `member` and `member_states`: the interface of both kinds of members, and the tables of their states.
3. `owned`: the partitions that a member owns.
4. `classic_member`: a member that uses the classic protocol, with its requests (`classic_requests`).
5. `leader`: the member that assigns the partitions.
6. `assignors`: the functions that assign partitions.
7. `membership`: the thread that sends a member's requests, and the methods that the consumer calls.
8. `commits`: commits offsets, and fetches committed offsets.

You can skip these modules when you read this folder for the first time: `consumer_member` and `topic_ids` (a
member that uses the consumer protocol), `member_metadata` and `offset_messages` (formats of messages) and `errors`
(error messages).
"""
