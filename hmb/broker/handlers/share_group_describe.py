"""ShareGroupDescribe: describe share groups (KIP-932).

Versions: 1; in the flexible encoding (KIP-482).
Permissions: DESCRIBE on each group.
Behavior: the response contains the state and the epochs of each group, and the assignment of each member. A group that
    is not a share group gets GROUP_ID_NOT_FOUND.
Version notes: none. Kafka had version 0 only in an early access release.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.handlers.shared_responses import add_authorized_operations, check_repetitions
from hmb.coordinator.share.description import DescribedShareGroup, describe_share_group
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse


def handle(request: ShareGroupDescribeRequest, context: RequestContext) -> ShareGroupDescribeResponse:
    check_repetitions(request.group_ids)
    groups = [_describe(group_id, context) for group_id in request.group_ids]
    if request.include_authorized_operations:
        add_authorized_operations(groups)
    return ShareGroupDescribeResponse(groups=groups)


def _describe(group_id: str, context: RequestContext) -> DescribedShareGroup:
    group = DescribedShareGroup(group_id=group_id)
    if not group_id:
        group.error_code = ErrorCode.INVALID_GROUP_ID
        return group
    with error_code_in(group):
        return context.broker.share.describe(group_id, describe_share_group)
    return group
