"""DeleteGroups: delete groups without members, and their offsets.

Versions: 0-2, flexible from 2.
Behavior: each group has its own error code. A name that the request contains twice is answered once. The response is
    sent when the deletion is on disk.
Version notes: only the encoding differs.
Left out: nothing.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

Result = DeleteGroupsResponse.DeletableGroupResult


def handle(request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
    response = DeleteGroupsResponse()
    for group_id in dict.fromkeys(request.groups_names):
        result = Result(group_id=group_id)
        with answering(result):
            context.broker.groups.delete(group_id)
        response.results.append(result)
    return response
