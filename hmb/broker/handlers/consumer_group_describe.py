"""ConsumerGroupDescribe: describe consumer groups that use the new group protocol (KIP-848).

Versions: 0-1; all use the flexible encoding (KIP-482).
Permissions: DESCRIBE on each group.
Behavior: the response contains the epochs of each group. For each member, the response contains the current assignment,
    and the target assignment, which the member will get next. A group that uses the classic protocol gets
    GROUP_ID_NOT_FOUND. Clients describe such groups with DescribeGroups.
Version notes: none. Version 1 adds a field, but the behavior stays the same.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.shared_responses import describe_all
from hmb.coordinator.consumer.description import DescribedConsumerGroup
from hmb.coordinator.consumer.requests import ConsumerGroupRequests
from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse


def handle(request: ConsumerGroupDescribeRequest, context: RequestContext) -> ConsumerGroupDescribeResponse:
    requests = ConsumerGroupRequests(context.broker.groups)
    groups = describe_all(request, DescribedConsumerGroup, requests.describe)
    return ConsumerGroupDescribeResponse(groups=groups)
