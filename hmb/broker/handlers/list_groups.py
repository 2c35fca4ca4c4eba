"""ListGroups: list the groups that this broker coordinates. HMB's only broker coordinates every group.

Versions: 0-5; versions 3 and later use the flexible encoding (KIP-482).
Permissions: DESCRIBE on the cluster for all groups; otherwise DESCRIBE on each group.
Behavior: the response contains each group once. When the broker has just started and has not loaded all groups yet, the
    error is COORDINATOR_LOAD_IN_PROGRESS.
Version notes: the filters of versions 4 and 5 do not distinguish upper case from lower case. If a filter is empty, it
    selects all groups. If a filter contains only unknown states or types, it selects no group.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    response = ListGroupsResponse()
    with error_code_in(response):
        response.groups = context.broker.groups.list_groups(request.states_filter, request.types_filter)
    return response
