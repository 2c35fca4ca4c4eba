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
from hmb.broker.shared_responses import describe_all
from hmb.coordinator.share.description import DescribedShareGroup
from hmb.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse


def handle(request: ShareGroupDescribeRequest, context: RequestContext) -> ShareGroupDescribeResponse:
    groups = describe_all(request, DescribedShareGroup, context.broker.share.describe)
    return ShareGroupDescribeResponse(groups=groups)
