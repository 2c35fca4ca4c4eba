"""ApiVersions: which APIs this broker speaks, in which versions.

Versions: 0-4, flexible from 3; the response's header stays at version 0 in all of them.
Behaviour: answers from the table of handlers, so nothing is advertised that is not served.  A request of a version
    that we do not know gets error 35 (UNSUPPORTED_VERSION) in a version 0 body together with the list, whatever the
    client sent; it tries again.
Version notes: 3 brought the client's name and version, which we log; 4 lets a feature's least version be 0.
    Of the features that brokers of a cluster agree on, clients need to know one: `transaction.version` 2 says that
    producers get a new epoch with every transaction (KIP-890).
Left out: the other features; a single broker has none to agree on with others.
"""

from __future__ import annotations

import logging
import re

from hmb.broker import handlers
from hmb.broker.context import RequestContext
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages import request_class
from hmb.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

LOGGER = logging.getLogger(__name__)
Supported, Finalized = ApiVersionsResponse.SupportedFeatureKey, ApiVersionsResponse.FinalizedFeatureKey
TRANSACTIONS = "transaction.version"
FIRST_VERSION_OF_NAMES = ApiVersionsRequest.first_version("client_software_name")
FIRST_VERSION_OF_LEAST_0 = 4
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")  # KIP-511


def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    named = (request.client_software_name, request.client_software_version)
    if context.version >= FIRST_VERSION_OF_NAMES:
        if not all(map(SOFTWARE_NAME.fullmatch, named)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        LOGGER.info("client %s is %s %s", context.header.client_id, *named)
    response = _response(ErrorCode.NONE)
    if context.version >= FIRST_VERSION_OF_LEAST_0:
        response.supported_features = [Supported(name=TRANSACTIONS, min_version=0, max_version=VERSION_2)]
    response.finalized_features = [
        Finalized(name=TRANSACTIONS, min_version_level=VERSION_2, max_version_level=VERSION_2)
    ]
    response.finalized_features_epoch = 0  # they never change
    return response


def for_unknown_version() -> ApiVersionsResponse:
    """The answer to a request of a version that we cannot decode; to be sent in version 0."""
    return _response(ErrorCode.UNSUPPORTED_VERSION)


def _response(error_code: ErrorCode) -> ApiVersionsResponse:
    api_keys = [
        ApiVersionsResponse.ApiVersion(
            api_key=request.api_key, min_version=request.versions[0], max_version=request.versions[-1]
        )
        for request in map(request_class, handlers.HANDLERS)
    ]
    return ApiVersionsResponse(error_code=error_code, api_keys=api_keys)
