"""IncrementalAlterConfigs (44): change some settings of a resource, and keep its other settings (KIP-339)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class IncrementalAlterConfigsRequest(Request, api_key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+"):
    """The changes to each resource. Version 1 uses the flexible encoding (KIP-482)."""

    class AlterConfigsResource(Struct):
        class AlterableConfig(Struct):
            name:             str        = t.string()
            config_operation: int        = t.int8()
            value:            str | None = t.string(nullable="0+")

        resource_type: int                   = t.int8()
        resource_name: str                   = t.string()
        configs:       list[AlterableConfig] = t.array(AlterableConfig)

    resources:     list[AlterConfigsResource] = t.array(AlterConfigsResource)
    validate_only: bool                       = t.boolean()


class IncrementalAlterConfigsResponse(
    Response, api_key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+"
):
    """An error code for each resource. Version 1 uses the flexible encoding (KIP-482)."""

    class AlterConfigsResourceResponse(Struct):
        error_code:    int        = t.int16()
        error_message: str | None = t.string(nullable="0+")
        resource_type: int        = t.int8()
        resource_name: str        = t.string()

    throttle_time_ms: int                                = t.int32()
    responses:        list[AlterConfigsResourceResponse] = t.array(AlterConfigsResourceResponse)
