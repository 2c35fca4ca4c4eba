"""`Admin`: what a cluster has, to look at and to change.

    base      whom to ask: any broker, the controller, a leader, a group's coordinator; when to ask again
    topics    create, list, describe, more partitions, delete

Where several things are asked for at once, the answer is a dict with a result or a KafkaError for each: one topic that
is missing does not hide the others.  `raised` turns one of them into an exception.
"""

from hmb.client.admin.base import raised
from hmb.client.admin.topics import (
    CreatedTopic,
    NewTopic,
    PartitionDescription,
    TopicDescription,
    TopicsAdmin,
)

__all__ = ["Admin", "CreatedTopic", "NewTopic", "PartitionDescription", "TopicDescription", "raised"]


class Admin(TopicsAdmin):
    """Looks at a cluster and changes it; belongs to one thread.  Times are in seconds."""
