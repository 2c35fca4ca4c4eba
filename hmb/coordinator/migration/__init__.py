"""Online migration: a group moves from the classic protocol to KIP-848, or back, while its members read records.

Problem: an application with a hundred consumers changes its protocol from classic to KIP-848. Nobody wants to stop all
consumers at once. The application restarts them one after the other, so for some time the group has members of both
protocols.

Idea: the coordinator converts the whole *group* to KIP-848. The new group also understands the requests of the
classic protocol.
- *Upgrade*: a client with the KIP-848 protocol wants to join a classic group. The coordinator first converts
  this group to a KIP-848 group with the same members and the same assignment. Then the client joins.
- *Mixed group*: some members of a KIP-848 group use the classic protocol. They still send JoinGroup, SyncGroup,
  Heartbeat and LeaveGroup. The coordinator computes the assignment, so no member is the leader. The response to
  JoinGroup comes immediately, so no member waits for the other members.
- *Downgrade*: only members with the classic protocol are left, for example because the other members have left.
  The KIP-848 group becomes a classic group, and starts a rebalance.

For example, the consumers A and B form the classic group "readers" in generation 7. A reads the partitions 0
and 1 of the topic "weather", and B reads partition 2. Both use an eager assignor such as "range". Then C
joins with the KIP-848 protocol:
1. C sends ConsumerGroupHeartbeat with epoch 0. "readers" becomes a KIP-848 group in epoch 7. A and B become
   members in epoch 7, and keep their partitions.
2. The coordinator adds C to the group, and increases the group epoch to 8. In the new target assignment,
   partition 1 moves from A to C.
3. A sends Heartbeat with generation 7. The response contains REBALANCE_IN_PROGRESS, because the group is now
   in epoch 8.
4. A gives up the partitions 0 and 1, because a member with an eager assignor gives up all its partitions
   before it joins again. A sends JoinGroup. The response contains generation 8, the new member epoch of A.
5. A sends SyncGroup. The response contains only partition 0.
6. C sends its next heartbeat. The response contains partition 1.
7. B sends Heartbeat, and the response contains REBALANCE_IN_PROGRESS. B gives up partition 2 and joins again.
   B then gets partition 2 back, because the target of B has not changed.

During an upgrade to KIP-848, waiting JoinGroup and SyncGroup requests of the classic group get the error
REBALANCE_IN_PROGRESS.

The migration of a group is complete when all consumers of the group have restarted with the KIP-848 protocol.

If consumer C leaves in group epoch 8, only the consumers A and B are left. Both use the classic protocol, so
the group becomes a classic group. Epoch 8 becomes generation 8. A rebalance starts at once. A and B join again
and form generation 9.

All members of a mixed group move to their target assignments in steps, as in every KIP-848 group.

For example, a member of a KIP-848 group uses the classic protocol and a cooperative assignor. With this kind of
assignor, a member keeps its partitions while it joins. The member owns the partitions 0 and 1, and must give up
partition 1:
1. The member sends JoinGroup. The request lists the partitions 0 and 1.
2. The member sends SyncGroup. The response contains only partition 0, so the member gives up partition 1.
3. The member sends Heartbeat. The response asks the member to join again, because the member has not yet
   confirmed that it has given up partition 1.
4. The member sends JoinGroup. The request lists only partition 0, which is the confirmation. The coordinator
   increases the member's epoch.

If a group has members, the setting `group.consumer.migration.policy` determines whether an upgrade or a downgrade
is allowed:
    policy           upgrade    downgrade
    bidirectional    yes        yes          the default
    upgrade          yes        no
    downgrade        no         yes
    disabled         no         no

If the policy forbids upgrades, a client cannot join a classic group with ConsumerGroupHeartbeat. The client
receives GROUP_ID_NOT_FOUND.

If the policy forbids downgrades, a KIP-848 group stays a KIP-848 group, even when all its members use the
classic protocol.

If a KIP-848 group has members, new consumers with the classic protocol can join. The group stays a KIP-848
group. The setting `group.consumer.migration.policy` does not affect these joins.

The setting `group.consumer.migration.policy` does not apply to a group without members. The first member that
joins determines the group's protocol.

Every member of a KIP-848 group has the same types of records. If a member uses the classic protocol, the field
`classic_member_metadata` of its record contains its session timeout and assignors (consumer/classic_metadata.py).

An upgrade or a downgrade replaces a group by a new group. One write stores the records of the new group, and
tombstones that delete the records of the old group. If this write fails, the old records are still on disk, so the
coordinator adds the tombstones to the new group's next write.

An upgrade fails if the coordinator cannot write the records of the new KIP-848 group to disk. After a failed
write, a KIP-848 group always goes back to the state that is on disk. The disk contains no records of the new
group, so the group has no members then. All members must join again.

Read the modules of this folder in this order:
- `upgrade`            converts a classic group with members to a KIP-848 group
- `classic_requests`   handles JoinGroup, SyncGroup, Heartbeat and LeaveGroup in a KIP-848 group
- `downgrade`          converts a KIP-848 group to a classic group
- `converter`          creates groups, and converts a group if a request requires this

On a first reading, skip `partitions`, which converts topic names to topic ids and back.

Source: KIP-848; Kafka's `GroupMetadataManager` (`convertToConsumerGroup`, `classicGroupJoinToConsumerGroup`,
`convertToClassicGroup`).
"""
