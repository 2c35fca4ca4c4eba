"""ApiVersions (18): which APIs a broker serves, and in which versions (KIP-35, KIP-511, KIP-584).

A client sends this request first on a connection, before either side knows the versions of the other. So ApiVersions
has two exceptions. The header of the response has version 0 in every version of the API. A broker that does not support
the request's version responds with error 35 in a body of *version 0*. This body contains the versions that the broker
supports.
"""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ApiVersionsRequest(Request, api_key=ApiKey.API_VERSIONS, versions="0-4", flexible="3+"):
    """A request for the versions that the broker supports.

    Versions 0 to 2 have no fields. Version 3 is flexible and carries the client's name and version. Version 4 changes
    only the response.
    """

    client_software_name:    str = t.string("3+", ignorable=True)
    client_software_version: str = t.string("3+", ignorable=True)


class ApiVersionsResponse(Response, api_key=ApiKey.API_VERSIONS, versions="0-4", flexible="3+", header="none"):
    """The range of versions of each API.

    Version 1 adds the throttle time. Version 3 is flexible and adds features, in tagged fields. Version 4 includes
    features whose minimum version is 0.
    """

    class ApiVersion(Struct):
        api_key:     int = t.int16()
        min_version: int = t.int16()
        max_version: int = t.int16()  # inclusive

    class SupportedFeatureKey(Struct):
        name:        str = t.string()
        min_version: int = t.int16()
        max_version: int = t.int16()

    class FinalizedFeatureKey(Struct):
        name:              str = t.string()
        max_version_level: int = t.int16()
        min_version_level: int = t.int16()

    error_code:               int                       = t.int16()
    api_keys:                 list[ApiVersion]          = t.array(ApiVersion)
    throttle_time_ms:         int                       = t.int32("1+", ignorable=True)
    supported_features:       list[SupportedFeatureKey] = t.array(SupportedFeatureKey, "3+", tag=0, ignorable=True)
    finalized_features_epoch: int                       = t.int64("3+", tag=1, default=-1, ignorable=True)  # -1: none
    finalized_features:       list[FinalizedFeatureKey] = t.array(FinalizedFeatureKey, "3+", tag=2, ignorable=True)
    zk_migration_ready:       bool                      = t.boolean("3+", tag=3, ignorable=True)
