"""DeleteGroups (42): delete groups without members, together with their offsets (KIP-229)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DeleteGroupsRequest(Request, api_key=ApiKey.DELETE_GROUPS, versions="0-2", flexible="2+"):
    """The groups to delete. Version 2 uses the flexible encoding (KIP-482)."""

    groups_names: list[str] = t.array(t.string)


class DeleteGroupsResponse(Response, api_key=ApiKey.DELETE_GROUPS, versions="0-2", flexible="2+"):
    """An error code for each group. Version 2 uses the flexible encoding (KIP-482)."""

    class DeletableGroupResult(Struct):
        group_id:   str = t.string()
        error_code: int = t.int16()

    throttle_time_ms: int                        = t.int32()
    results:          list[DeletableGroupResult] = t.array(DeletableGroupResult)
