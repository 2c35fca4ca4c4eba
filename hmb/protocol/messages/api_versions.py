"""ApiVersions (18): ask a broker which APIs it serves, and in which versions (KIP-35, KIP-511, KIP-584).

A client sends ApiVersions as the first request on a connection, when it does not know yet which versions the broker
supports.

Two special rules make sure that the client can decode the response to ApiVersions. First, the response's header always
has version 0. Second, if the broker does not support the request's version, it responds with error 35 and with a body
of *version 0*. This body lists the versions that the broker supports.
"""

from typing import ClassVar

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ApiVersionsRequest(Request, api_key=ApiKey.API_VERSIONS, versions="0-4", flexible="3+"):
    """A request for the versions that the broker supports.

    Versions 0 to 2 have no fields. Version 3 uses the flexible encoding (KIP-482) and contains the name and the version
    of the client's software. Version 4 changes only the response.
    """

    client_software_name:    str = t.string("3+", ignorable=True)
    client_software_version: str = t.string("3+", ignorable=True)


class ApiVersionsResponse(Response, api_key=ApiKey.API_VERSIONS, versions="0-4", flexible="3+", header="none"):
    """The range of versions that the broker supports, for each API.

    - Version 1 adds the throttle time.
    - Version 2 has the same layout as version 1.
    - Version 3 uses the flexible encoding (KIP-482), and adds the features of the cluster in tagged fields.
    - Version 4 adds supported features whose minimum version is 0. Older clients cannot handle 0, so version 3
      leaves out these features.
    """

    FIRST_VERSION_OF_LEAST_0: ClassVar[int] = 4

    class ApiVersion(Struct):
        api_key:     int = t.int16()
        min_version: int = t.int16()
        max_version: int = t.int16()  # the newest supported version

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
    finalized_features_epoch: int                       = t.int64("3+", tag=1, default=-1, ignorable=True)
    finalized_features:       list[FinalizedFeatureKey] = t.array(FinalizedFeatureKey, "3+", tag=2, ignorable=True)
    zk_migration_ready:       bool                      = t.boolean("3+", tag=3, ignorable=True)


FIRST_VERSION_OF_NAMES = ApiVersionsRequest.first_version("client_software_name")
