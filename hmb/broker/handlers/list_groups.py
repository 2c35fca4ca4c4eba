"""ListGroups: the groups that this broker coordinates, which are all.

Versions: 0-5, flexible from 3.
Behaviour: every group once; COORDINATOR_LOAD_IN_PROGRESS until all are loaded after a start.
Version notes: 4 selects by states and tells them, 5 by types; capitals do not matter.  Nothing selected means all, and
    what no group can be selects none.
Left out: nothing.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    response = ListGroupsResponse()
    with answering(response):
        response.groups = context.broker.groups.list_groups(request.states_filter, request.types_filter)
    return response
