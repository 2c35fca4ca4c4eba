"""DeleteGroups: delete groups that have no members, together with their committed offsets.

Versions: 0-2; version 2 uses the flexible encoding (KIP-482).
Permissions: DELETE on each group.
Behavior: each group has its own error code. If a request contains a group twice, the response contains it once. The
    broker sends the response after the deletion is on disk. If the group is a share group, the broker also deletes the
    states of its share-partitions.
Version notes: none. The versions differ only in their encoding.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

Result = DeleteGroupsResponse.DeletableGroupResult


def handle(request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
    response = DeleteGroupsResponse()
    for group_id in dict.fromkeys(request.groups_names):
        result = Result(group_id=group_id)
        with error_code_in(result):
            partitions = context.broker.share.partitions_of(group_id)
            context.broker.groups.delete(group_id)
            context.broker.share.delete_states(group_id, partitions)
        response.results.append(result)
    return response
