"""Modern groups: what KIP-848 groups, share groups and streams groups have in common.

In a classic group, a member computes the assignment. In a *modern* group, the broker computes a *target*
assignment. At each heartbeat, a member gives up or takes over some partitions or tasks, until its assignment equals
the target.

Kafka has three kinds of modern groups. All three kinds store members, epochs and targets, and remove a member
that sends no heartbeats. This folder contains the code that all three kinds use. The code that only one kind
uses is in three other folders:
    folder     kind of group                members own        requests
    consumer   consumer groups (KIP-848)    partitions         ConsumerGroupHeartbeat
    share      share groups (KIP-932)       partitions         ShareGroupHeartbeat
    streams    streams groups (KIP-1071)    tasks              StreamsGroupHeartbeat

In a share group, several members can own the same partition at the same time.

For example, `ShareGroup` is a subclass of `ModernGroup`. When a member of a share group sends no heartbeat for 45 s,
`ModernGroup` removes the member, and `ShareGroup` then increases the group epoch.

Read the folder `consumer` first. Then read the modules of this folder in this order:
- `group`         the base class of all modern groups, which removes members after their deadlines
- `state`         the members, epochs and target assignments of a group, and the records that store them
- `states`        the states of a group, and the conditions that define them
- `deadlines`     when the session of a member ends, and how long a member may take to give up partitions
- `store`         restores the group after a failed write

On a first reading, skip the other modules of this folder:
- `heartbeat` and `member_epoch` check the fields of requests.
- `partitions` converts an assignment between its form in memory and its form in records and messages.
- `settings` declares the settings that KIP-848 groups, share groups and streams groups have in common.

Source: KIP-848, KIP-932, KIP-1071; Kafka's `ModernGroup`.
"""
