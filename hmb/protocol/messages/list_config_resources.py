"""ListConfigResources (74): list the resources that have settings (KIP-1000, KIP-1142)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ListConfigResourcesRequest(Request, api_key=ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+"):
    """The types of resources to list. An empty list means all types.

    Version 0 lists only the resources of the type "client metrics" (16). Version 1 adds `resource_types` (KIP-1142).
    """

    resource_types: list[int] = t.array(t.int8, "1+")


class ListConfigResourcesResponse(Response, api_key=ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+"):
    """The names of the resources.

    Version 1 adds the type of each resource (KIP-1142).
    """

    class ConfigResource(Struct):
        resource_name: str = t.string()
        resource_type: int = t.int8("1+", default=16, ignorable=True)

    throttle_time_ms: int                  = t.int32()
    error_code:       int                  = t.int16()
    config_resources: list[ConfigResource] = t.array(ConfigResource)


FIRST_LIST_CONFIG_RESOURCES_VERSION_OF_TYPES = ListConfigResourcesRequest.first_version("resource_types")
