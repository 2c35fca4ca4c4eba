"""ApiVersions: list the APIs that this broker supports, with their versions.

Versions: 0-4, flexible from 3; the response's header has version 0 in all of them.
Behavior: the list comes from the table of handlers, so the broker advertises only what it serves. A request of an
    unknown version gets UNSUPPORTED_VERSION (35) and the list, in a body of version 0. The client then tries again with
    a version from the list. A broker that imitates an older Kafka (hmb/testing/versions.py) lists that Kafka's
    versions.
Version notes: version 3 adds the client's name and version, which the broker logs. From version 4 on a feature's
    minimum version may be 0. The brokers of a cluster agree on features. Clients need one of these features: with
    `transaction.version` 2 a producer gets a new epoch with every transaction (KIP-890).
Left out: all other features, which concern several brokers.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

from hmb.broker import handlers
from hmb.broker.context import RequestContext
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages import request_class
from hmb.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

LOGGER = logging.getLogger(__name__)
Supported, Finalized = ApiVersionsResponse.SupportedFeatureKey, ApiVersionsResponse.FinalizedFeatureKey
TRANSACTIONS = "transaction.version"
FIRST_VERSION_OF_NAMES = ApiVersionsRequest.first_version("client_software_name")
FIRST_VERSION_OF_LEAST_0 = 4
FIRST_END_TXN_OF_VERSION_2 = 5  # KIP-890: only brokers with this version of EndTxn have `transaction.version` 2
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")  # KIP-511


def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    named = (request.client_software_name, request.client_software_version)
    if context.version >= FIRST_VERSION_OF_NAMES:
        if not all(map(SOFTWARE_NAME.fullmatch, named)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        LOGGER.info("client %s is %s %s", context.header.client_id, *named)
    offered = context.broker.versions
    response = _response(ErrorCode.NONE, offered)
    if offered is not None and FIRST_END_TXN_OF_VERSION_2 not in offered.get(ApiKey.END_TXN, ()):
        return response
    if context.version >= FIRST_VERSION_OF_LEAST_0:
        response.supported_features = [Supported(name=TRANSACTIONS, min_version=0, max_version=VERSION_2)]
    response.finalized_features = [
        Finalized(name=TRANSACTIONS, min_version_level=VERSION_2, max_version_level=VERSION_2)
    ]
    response.finalized_features_epoch = 0  # the features never change
    return response


def for_unknown_version(offered: Mapping[ApiKey, range] | None) -> ApiVersionsResponse:
    """Return the response to a request of an unknown version. It is encoded in version 0.

    The list is empty if the broker imitates a Kafka older than 2.4, which did not yet return one (KIP-511).
    """
    if offered is not None and offered[ApiKey.API_VERSIONS][-1] < FIRST_VERSION_OF_NAMES:
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return _response(ErrorCode.UNSUPPORTED_VERSION, offered)


def _response(error_code: ErrorCode, offered: Mapping[ApiKey, range] | None) -> ApiVersionsResponse:
    if offered is None:
        offered = {key: request_class(key).versions for key in handlers.HANDLERS}
    api_keys = [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=versions[0], max_version=versions[-1])
        for key, versions in offered.items()
    ]
    return ApiVersionsResponse(error_code=error_code, api_keys=api_keys)
