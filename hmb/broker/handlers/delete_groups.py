"""DeleteGroups: forget groups that have no members, with their offsets.

Versions: 0-2, flexible from 2.
Behaviour: each group for itself; a name that comes twice is answered once.  Answered when the deletion is written down.
Version notes: they differ in their bytes only.
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
