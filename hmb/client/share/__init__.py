"""The share consumer: it reads a topic as a queue, together with the other members of a share group (KIP-932).

The members of a consumer group divide the partitions. The members of a share group divide the *records*: the broker
gives each record to one member. So a group can have more members than partitions. A member acknowledges each record:
    accept    the member has processed the record
    release   another member (or the same one) should get the record again
    reject    the record cannot be processed; no member gets it again
    renew     the member needs more time, and keeps the record

Each record that a member receives has its own lock, which lasts 30 s from the delivery
(`share.record.lock.duration.ms`). If the member does not acknowledge the record in this time, the broker can deliver
the record to another member. Heartbeats do not extend the lock, but `renew` does. If the connection of a member ends,
the broker releases the member's records immediately.

Read the modules of this folder in this order:
- `acknowledgements`  the acquired records, and the application's acknowledgements
- `membership`        the thread that sends the heartbeats
- `session`           the share session with one broker: fetches and acknowledgements
- `consumer`          `hmb.ShareConsumer`
"""
