"""AlterConfigs (33): replace all settings of a resource.

If an AlterConfigs request does not contain a setting of the resource, the broker resets this setting to its default
value.
"""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class AlterConfigsRequest(Request, api_key=ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+"):
    """The new settings of each resource. They replace all earlier settings of the resource.

    Version 2 uses the flexible encoding (KIP-482).
    """

    class AlterConfigsResource(Struct):
        class AlterableConfig(Struct):
            name:  str        = t.string()
            value: str | None = t.string(nullable="0+")

        resource_type: int                   = t.int8()
        resource_name: str                   = t.string()
        configs:       list[AlterableConfig] = t.array(AlterableConfig)

    resources:     list[AlterConfigsResource] = t.array(AlterConfigsResource)
    validate_only: bool                       = t.boolean()


class AlterConfigsResponse(Response, api_key=ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+"):
    """An error code for each resource. Version 2 uses the flexible encoding (KIP-482)."""

    class AlterConfigsResourceResponse(Struct):
        error_code:    int        = t.int16()
        error_message: str | None = t.string(nullable="0+")
        resource_type: int        = t.int8()
        resource_name: str        = t.string()

    throttle_time_ms: int                                = t.int32()
    responses:        list[AlterConfigsResourceResponse] = t.array(AlterConfigsResourceResponse)
