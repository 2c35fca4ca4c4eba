"""ListGroups: list the groups of this broker, which coordinates all groups.

Versions: 0-5, flexible from 3.
Behavior: each group is listed once. COORDINATOR_LOAD_IN_PROGRESS is the error until all groups are loaded after a
    start.
Version notes: version 4 adds a filter by states, and version 5 a filter by types. The filters ignore upper and lower
    case. An empty filter selects all groups, and an unknown state or type selects no group.
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
