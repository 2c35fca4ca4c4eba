"""ApiVersions (18): which APIs a broker serves, in which versions.  KIP-35, KIP-511 (client's name), KIP-584.

The first request on a connection, sent before client and broker know anything of each other.  Hence two quirks: the
response's header is version 0 in every version, and a broker that does not know the request's version answers error 35
in a *version 0* body, from which the client learns what to ask next.
"""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ApiVersionsRequest(Request, api_key=ApiKey.API_VERSIONS, versions="0-4", flexible="3+"):
    """Ask what the broker can do.

    v0-v2: no fields at all.  v3: flexible; the client tells its name and version.  v4: as v3, for the response's sake.
    """

    client_software_name:    str = t.string("3+", ignorable=True)
    client_software_version: str = t.string("3+", ignorable=True)


class ApiVersionsResponse(Response, api_key=ApiKey.API_VERSIONS, versions="0-4", flexible="3+", header="none"):
    """The APIs with their version ranges.

    v1: throttle time.  v3: flexible; features, in tagged fields.  v4: also features with minimum version 0.
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
    finalized_features_epoch: int                       = t.int64("3+", tag=1, default=-1, ignorable=True)  # -1 unknown
    finalized_features:       list[FinalizedFeatureKey] = t.array(FinalizedFeatureKey, "3+", tag=2, ignorable=True)
    zk_migration_ready:       bool                      = t.boolean("3+", tag=3, ignorable=True)
