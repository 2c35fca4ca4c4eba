"""DescribeGroups: describe groups that use the classic group protocol.

Versions: 0-6; versions 5 and later use the flexible encoding (KIP-482).
Permissions: DESCRIBE on each group.
Behavior: the response contains the state, the protocol and the members of each group. The metadata of the members is
    included only while the group is in the state Stable. An unknown group has the state Dead.
Version notes: from version 6 on, an unknown group also gets the error GROUP_ID_NOT_FOUND.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.shared_responses import add_authorized_operations, check_repetitions
from hmb.protocol.enums import GroupState
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.describe_groups import (
    FIRST_VERSION_OF_MESSAGES,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

DescribedGroup = DescribeGroupsResponse.DescribedGroup


def handle(request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    check_repetitions(request.groups)
    groups = [_describe(group_id, context) for group_id in request.groups]
    if request.include_authorized_operations:
        add_authorized_operations(groups)
    return DescribeGroupsResponse(groups=groups)


def _describe(group_id: str, context: RequestContext) -> DescribedGroup:
    group = DescribedGroup(group_id=group_id)
    with error_code_in(group):
        try:
            return context.broker.groups.describe(group_id)
        except KafkaError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            group.group_state = GroupState.DEAD.value
            if context.version >= FIRST_VERSION_OF_MESSAGES:
                raise
    if context.version < FIRST_VERSION_OF_MESSAGES:
        group.error_message = None
    return group
