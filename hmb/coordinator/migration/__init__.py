r"""Online migration: a group moves from the classic protocol to KIP-848, or back, while its members read records.

Problem: an application with a hundred consumers changes its protocol from classic to KIP-848. Nobody wants to stop all
consumers at once. The application restarts them one after the other, so for some time the group has members of both
protocols.

Idea: the coordinator converts the *group* to KIP-848, and the new group also answers members with the classic protocol.
- *Upgrade*: the first member with the KIP-848 protocol joins a classic group. The classic group becomes a KIP-848
  group with the same members and the same assignment.
- *Mixed group*: a KIP-848 group in which some members use the classic protocol. Such a member still sends JoinGroup,
  SyncGroup, Heartbeat and LeaveGroup. The coordinator answers from the state of the KIP-848 group, and computes the
  assignment. No member waits for another member, and no member is the leader.
- *Downgrade*: the last member with the KIP-848 protocol leaves, or its session ends. The KIP-848 group becomes a
  classic group, which then rebalances.

This table shows when the coordinator converts a group:
    upgrade      classic group -> KIP-848 group    A client joins with ConsumerGroupHeartbeat (epoch 0).
    downgrade    KIP-848 group -> classic group    All members that are left use the classic protocol.

For example, the classic group "readers" is in generation 7. Consumers A and B read partitions 0 and 1 of topic
"weather". Then C joins with the KIP-848 protocol, and these events follow:
1. C sends ConsumerGroupHeartbeat with epoch 0. "readers" becomes a KIP-848 group in epoch 7. A and B are its members in
   epoch 7, and they keep their partitions. Requests of A or B that wait for a rebalance get REBALANCE_IN_PROGRESS.
2. The coordinator adds C to the group, so the group epoch increases to 8. The coordinator computes a target assignment,
   in which partition 1 moves to C.
3. B sends Heartbeat with generation 7. The response contains REBALANCE_IN_PROGRESS, because 7 is less than 8.
4. B sends JoinGroup. (A consumer with an eager assignor such as "range" gives up all its partitions before it sends
   JoinGroup.) The response contains generation 8, the member epoch of B.
5. B sends SyncGroup, and the response contains the partitions of B: none. C receives partition 1 with its next
   heartbeat. A has joined again in the same way, and keeps partition 0.
6. A and B restart with the KIP-848 protocol, one after the other. Or C leaves: then A and B form a classic group again.
   The departure of C does not increase the group epoch. The classic group therefore starts with generation 8, and its
   members join again.

A mixed group contains members with the classic protocol and members with the KIP-848 protocol. All its members move to
their target assignments in steps, as in every KIP-848 group.

For example, a member of a KIP-848 group uses the classic protocol and a cooperative assignor. The member owns the
partitions 0 and 1, and must give up partition 1:
1. The member sends JoinGroup. The request lists the partitions 0 and 1, because the member keeps them while it joins.
2. The member sends SyncGroup. The response contains only partition 0, so the member gives up partition 1.
3. The member sends Heartbeat. The response asks the member to join again, and so to confirm that it has given up
   partition 1.
4. The member sends JoinGroup. The request lists only partition 0, so the member epoch of the member now increases.

The setting `group.consumer.migration.policy` decides whether a group with members may be upgraded or downgraded:
    policy           upgrade    downgrade
    bidirectional    yes        yes          the default
    upgrade          yes        no
    downgrade        no         yes
    disabled         no         no
If the policy forbids the upgrade, a client that joins with ConsumerGroupHeartbeat receives GROUP_ID_NOT_FOUND. If the
policy forbids the downgrade, the group stays a KIP-848 group, even when all its members use the classic protocol. The
policy does not apply to JoinGroup: a consumer with the classic protocol can always join a KIP-848 group. The policy
also does not apply to groups without members, which change their protocol with the first member that joins.

For an online migration, the journal needs no new kind of record. The record of a member contains the field
`classic_member_metadata` if the member uses the classic protocol (consumer/classic_metadata.py).

An upgrade or a downgrade writes the records of the new group together with tombstones, which delete the records of the
old group. If this write fails, the next write of the new group contains the tombstones again.

If the write of an upgrade fails, no record of the new KIP-848 group is on disk. The coordinator then restores the new
group from its records on disk, so the group has no members. All members must join again.

Read the modules of this folder in this order:
- `upgrade`            when a classic group may become a KIP-848 group, and the members that it keeps
- `classic_requests`   JoinGroup, SyncGroup, Heartbeat and LeaveGroup in a KIP-848 group
- `downgrade`          when a KIP-848 group becomes a classic group again, and with which assignment
- `converter`          makes groups, and selects the protocol of a group for each request

On a first reading, skip `partitions`, which converts topic names to topic ids and back.

Source: KIP-848; Kafka's `GroupMetadataManager` (`convertToConsumerGroup`, `classicGroupJoinToConsumerGroup`,
`convertToClassicGroup`).
"""
