"""The group protocol of KIP-848: the broker assigns the partitions, and each member moves to its assignment in steps.

In the classic protocol, all members stop and wait for each other during a rebalance. In KIP-848, no member stops. The
broker computes a *target* assignment. Each member then moves from its current assignment to the target in steps, and
takes one step at each heartbeat. During these steps, a member continues to read the partitions that it keeps.

Three kinds of epochs show how far a group has moved towards its target assignment. An epoch is a number that
only increases:
    group epoch         increases when a member joins, leaves or changes its topics, or when a subscribed topic
                        changes (for example, gets more partitions)
    assignment epoch    the group epoch for which the broker has computed the newest target assignment
    member epoch        each member has its own: the newest assignment epoch that this member has reached

A member first gives up all partitions that are not in its target assignment. It then enters the epoch of
this target assignment. If other members still own partitions of the target, the member *waits* for these
partitions.

The state of a group depends on the group epoch, on the assignment epoch, and on the epoch of each member. For example,
a group has two members:
    group epoch   assignment epoch   epochs of the members   state of the group
    5             4                  4 and 4                 Assigning: the broker must compute a new target assignment
    5             5                  5 and 4                 Reconciling: one member has not moved to epoch 5 yet
    5             5                  5 and 5                 Reconciling, if a member waits for partitions
    5             5                  5 and 5                 Stable, if no member waits for partitions

For example, the broker has computed the target assignment of epoch 5, and a member in epoch 4 must give up partition 2.
The member sends a heartbeat. The response contains the assignment without partition 2, and the member stays in epoch 4.
With its next heartbeat, the member confirms that it no longer owns partition 2. The response to this heartbeat contains
epoch 5.

Read the modules of this folder in this order:
- `states`        the states of a member, and the table that defines them
- `member`        one member, and how it moves to its target assignment
- `assignors`     the two algorithms that compute a target assignment: uniform and range
- `subscriptions` which topics the members read, and whether these topics have changed
- `group`         the group: how it handles one heartbeat, from the request to the response
- `state`         the members, epochs and target assignment of a group, and the records of their changes

`ConsumerGroup` is a subclass of `ModernGroup`, and `ConsumerState` is a subclass of `ModernState`. Both base
classes are in the folder `hmb/coordinator/modern`, because share groups and streams groups use them too.

On a first reading, skip these modules:
- `heartbeat` checks the fields of a request.
- `records` converts members to journal records, and back.
- `topic_regex` matches topic names with regular expressions.
- `settings` declares the settings of a group. `requests` finds the group of a request.
- `description` builds the response to ConsumerGroupDescribe.

During an online migration, some members of a KIP-848 group use the classic protocol. The folder `migration` handles
their requests. The module `classic_metadata` contains the data that only these members have. The module `deadlines`
contains the deadlines that only these members have.

One feature of KIP-848 is not implemented: the assignors ignore the racks of the members. This has no cost, because HMB
is one broker: no member is closer to a partition than another member.

Source: KIP-848, KIP-1101, KIP-1251; Kafka's `ConsumerGroup`.
"""
