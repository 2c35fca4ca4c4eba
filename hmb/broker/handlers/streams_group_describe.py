"""StreamsGroupDescribe: describe streams groups (KIP-1071).

Versions: 0; in the flexible encoding (KIP-482).
Permissions: DESCRIBE on the group, and on each topic of its topology.
Behavior: the response contains the state, the epochs and the topology of each group, and the current and the
    target tasks of each member. A group that is not a streams group gets GROUP_ID_NOT_FOUND. If ACLs do not
    allow the client to describe a topic of the topology, the group gets TOPIC_AUTHORIZATION_FAILED.
Version notes: none.
Left out: the offsets of tasks. They would show how far a member has restored the state stores of a task.
    Members do not send these offsets, so HMB's broker does not know them. Kafka 4.3 has the same limit.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.shared_responses import describe_all
from hmb.coordinator.streams.description import DescribedStreamsGroup
from hmb.coordinator.streams.requests import StreamsGroupRequests
from hmb.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse


def handle(request: StreamsGroupDescribeRequest, context: RequestContext) -> StreamsGroupDescribeResponse:
    streams = StreamsGroupRequests(context.broker.groups)
    groups = describe_all(request, DescribedStreamsGroup, streams.describe)
    return StreamsGroupDescribeResponse(groups=groups)
