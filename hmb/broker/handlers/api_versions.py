"""ApiVersions: list the APIs that this broker supports, with the supported versions of each API.

Versions: 0-4; versions 3 and later use the flexible encoding (KIP-482). All responses have header version 0.
Permissions: none; every client may send this request.
Behavior: the response lists the APIs that the broker can handle. Three cases are special:
    - *Telemetry.* As in Kafka, the response lists the APIs for client telemetry only if the setting
      `client.telemetry.enable` is true.
    - *Unknown version.* If the broker does not know the version of the ApiVersions request, it returns
      UNSUPPORTED_VERSION (35) and the list of APIs. The response has version 0, which every client can read.
      The client then sends the request again, in a version from the list.
    - *Older Kafka.* In tests, a broker can imitate an older Kafka (hmb/testing/versions.py). It then lists only
      the APIs and versions of that Kafka.
Version notes: version 3 of the request adds the name and the version of the client's software. The broker logs
    both. If the name or the version is malformed, the error is INVALID_REQUEST. Versions 3 and 4 of the
    response list HMB's features. A feature is a part of the protocol that a cluster can turn on, and a *level*
    is the version of a feature. Version 3 of the response contains only the level in use. Version 4 adds the
    supported levels, from 0 to the level in use. Version 3 lacks the supported levels, because older clients
    cannot handle level 0. HMB has these features:
    - `transaction.version`: at level 2, a producer gets a new epoch with each transaction (KIP-890).
    - `group.version`: at level 1, the broker supports KIP-848 groups.
    - `share.version`: at level 1, the broker supports share groups (KIP-932).
    - `streams.version`: at level 1, the broker supports streams groups (KIP-1071).
Left out: all other features. They matter only inside a cluster of several brokers, so clients do not need them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from hmb.broker import handlers
from hmb.broker.context import RequestContext
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages import request_class
from hmb.protocol.messages.api_versions import FIRST_VERSION_OF_NAMES, ApiVersionsRequest, ApiVersionsResponse
from hmb.protocol.messages.end_txn import FIRST_END_TXN_VERSION_OF_EPOCHS
from hmb.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

LOGGER = logging.getLogger(__name__)
Supported, Finalized = ApiVersionsResponse.SupportedFeatureKey, ApiVersionsResponse.FinalizedFeatureKey


class Feature(NamedTuple):
    """A feature of HMB, and the API version that the feature needs.

    A broker can imitate an older Kafka. If the older Kafka does not have this API version, the broker does not
    offer the feature.
    """

    name: str
    level: int
    api_key: ApiKey
    version: int


FEATURES = (
    Feature("group.version", 1, ApiKey.CONSUMER_GROUP_HEARTBEAT, 0),
    Feature("transaction.version", VERSION_2, ApiKey.END_TXN, FIRST_END_TXN_VERSION_OF_EPOCHS),
    Feature("share.version", 1, ApiKey.SHARE_GROUP_HEARTBEAT, ShareGroupHeartbeatRequest.versions[0]),
    Feature("streams.version", 1, ApiKey.STREAMS_GROUP_HEARTBEAT, 0),
)
TELEMETRY = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")  # the rule of KIP-511


def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    named = (request.client_software_name, request.client_software_version)
    if context.version >= FIRST_VERSION_OF_NAMES:
        if not all(map(SOFTWARE_NAME.fullmatch, named)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.client.software = " ".join(named)
        LOGGER.info("client %r uses the software %s, version %s", context.header.client_id, *named)
    offered = context.broker.versions
    response = _response(ErrorCode.NONE, offered)
    features = [
        feature for feature in FEATURES if offered is None or feature.version in offered.get(feature.api_key, ())
    ]
    if not features:
        return response
    if context.version >= ApiVersionsResponse.FIRST_VERSION_OF_LEAST_0:
        response.supported_features = [
            Supported(name=each.name, min_version=0, max_version=each.level) for each in features
        ]
    response.finalized_features = [
        Finalized(name=each.name, min_version_level=each.level, max_version_level=each.level) for each in features
    ]
    response.finalized_features_epoch = 0  # The epoch is always 0, because the features never change.
    return response


def for_unknown_version(offered: Mapping[ApiKey, range] | None) -> ApiVersionsResponse:
    """Return the response to an ApiVersions request of an unknown version. The caller encodes the result in version 0.

    In Kafka before version 2.4, this response contains no list of APIs (KIP-511). If the broker imitates such an old
    Kafka, the list is empty.
    """
    if offered is not None and offered[ApiKey.API_VERSIONS][-1] < FIRST_VERSION_OF_NAMES:
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return _response(ErrorCode.UNSUPPORTED_VERSION, offered)


def offered_versions(versions: Mapping[ApiKey, range] | None, *, telemetry: bool) -> Mapping[ApiKey, range]:
    """Return the versions of each API that a broker offers: `versions`, or all versions of HMB if `versions` is None.

    If `telemetry` is false, leave out the APIs for the telemetry of clients (KIP-714).
    """
    if versions is None:
        versions = {key: request_class(key).versions for key in handlers.HANDLERS}
    return {key: its for key, its in versions.items() if telemetry or key not in TELEMETRY}


def _response(error_code: ErrorCode, offered: Mapping[ApiKey, range] | None) -> ApiVersionsResponse:
    if offered is None:
        offered = offered_versions(None, telemetry=True)
    return ApiVersionsResponse(error_code=error_code, api_keys=list(_api_keys(tuple(offered.items()))))


@lru_cache
def _api_keys(offered: tuple[tuple[ApiKey, range], ...]) -> list[ApiVersionsResponse.ApiVersion]:
    """Return the list of APIs for a response.

    Every new connection needs this list, so the function caches it. Without the cache, each connection would need
    another 0.08 ms of processor time. For comparison, a new connection with a SCRAM login needs about 2 ms.
    """
    return [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=versions[0], max_version=versions[-1])
        for key, versions in offered
    ]
