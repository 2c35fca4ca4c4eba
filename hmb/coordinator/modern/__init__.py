"""The group protocol of KIP-848: the broker assigns the partitions, and each member follows at its own pace.

The classic protocol stops all members at a barrier. KIP-848 has no barrier. The broker computes a *target* assignment,
and each member moves from its current assignment to the target with its own heartbeats. A member continues to read the
partitions that it keeps.

Three epochs describe how far a group has come::

    group epoch         grows when a member joins, leaves or subscribes to other topics, or when a topic changes
    assignment epoch    the group epoch for which the target assignment was computed
    member epoch        the assignment epoch that a member has reached

    group epoch 5  >  assignment epoch 4               Assigning: the target is older than the group
    group epoch 5  =  assignment epoch 5, member at 4  Reconciling: a member has not reached the target
    group epoch 5  =  assignment epoch 5, members at 5 Stable

For example, a member at epoch 4 sends a heartbeat after the target of epoch 5 was computed. If it must give up
partition 2, the response contains its assignment without partition 2, and the member stays in epoch 4. Its next
heartbeat confirms that it no longer owns partition 2. The response to that heartbeat contains epoch 5.

Read in this order:

- `states`        the states of members and groups, and the tables that drive them
- `member`        one member, and its steps towards the target
- `assignors`     the two algorithms that compute a target: uniform and range
- `group`         one heartbeat from the request to the response
- `deadlines`     the sessions of the members, and their time to give up partitions
- `state`         the members, epochs and targets of a group, and the records of their changes

A first reading can skip the rest. `heartbeat` checks the fields of a request. `records` and `store` convert a group to
records and restore it after a failed write. `topic_regex` matches subscriptions, and `description` answers
ConsumerGroupDescribe.

Left out: members that use the classic protocol in such a group (online migration), and racks.

Source: KIP-848, KIP-1101, KIP-1251; Kafka's `ConsumerGroup`.
"""
