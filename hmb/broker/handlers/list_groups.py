"""ListGroups: list the groups that this broker coordinates. HMB's only broker coordinates every group.

Versions: 0-5; versions 3 and later use the flexible encoding (KIP-482).
Permissions: DESCRIBE on the cluster for all groups; otherwise DESCRIBE on each group.
Behavior: the response contains each group once. A client with DESCRIBE on the cluster sees all groups. A client without
    this permission sees only the groups on which it has DESCRIBE. If the broker has just started and is still loading
    the groups, the error is COORDINATOR_LOAD_IN_PROGRESS.
Version notes: version 4 adds a filter for the states of groups. Version 5 adds a filter for the types of groups. The
    filters ignore the difference between upper and lower case. An empty filter selects all groups. A filter with only
    unknown states or types selects no group.
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
