"""ConsumerGroupDescribe: describe consumer groups that use the new group protocol (KIP-848).

Versions: 0-1; all use the flexible encoding (KIP-482).
Permissions: DESCRIBE on each group.
Behavior: the response contains the epochs of each group. For each member it contains the current assignment, and the
    target assignment that the member will get. A group that uses the classic protocol gets GROUP_ID_NOT_FOUND. Clients
    describe such groups with DescribeGroups.
Version notes: none. Version 1 adds only a field.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.handlers.shared_responses import add_authorized_operations, check_repetitions
from hmb.coordinator.modern.description import DescribedConsumerGroup
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse


def handle(request: ConsumerGroupDescribeRequest, context: RequestContext) -> ConsumerGroupDescribeResponse:
    check_repetitions(request.group_ids)
    groups = [_describe(group_id, context) for group_id in request.group_ids]
    if request.include_authorized_operations:
        add_authorized_operations(groups)
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(group_id: str, context: RequestContext) -> DescribedConsumerGroup:
    group = DescribedConsumerGroup(group_id=group_id)
    if not group_id:
        group.error_code = ErrorCode.INVALID_GROUP_ID
        return group
    with error_code_in(group):
        return context.broker.groups.describe_consumer(group_id)
    return group
