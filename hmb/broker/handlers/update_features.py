"""UpdateFeatures: change the versions of features that the brokers of a cluster use.

Versions: 0-2; all use the flexible encoding (KIP-482).
Permissions: ALTER on the cluster.
Behavior: in Kafka, a cluster can use a higher version of a feature after all its brokers were upgraded. HMB is
    a single broker, and the versions of its features never change. A request therefore succeeds only if it asks
    for the present version of each feature that it names. A successful request changes nothing. All other
    requests get INVALID_UPDATE_VERSION.
Version notes: in versions 0 and 1, a successful response contains a result for each feature. Version 2 has no
    such results.
Left out: changing a feature to a lower version. A client cannot disable features such as share groups or
    transaction version 2 (KIP-890), because the broker answers with INVALID_UPDATE_VERSION.
"""

from __future__ import annotations

from enum import IntEnum

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.handlers.api_versions import FEATURES
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

Update = UpdateFeaturesRequest.FeatureUpdateKey
Result = UpdateFeaturesResponse.UpdatableFeatureResult
LEVELS = {feature.name: feature.level for feature in FEATURES}  # the version of each feature


class UpgradeType(IntEnum):
    """The type of an update: whether it may lower the version of a feature, and whether it may lose data."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def handle(request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    response = UpdateFeaturesResponse(error_message=None)
    with error_code_in(response):
        for update in request.feature_updates:
            _check(update)
        response.results = [Result(feature=each.feature, error_message=None) for each in request.feature_updates]
    return response


def _check(update: Update) -> None:
    """Check that the update leaves a known feature at its present version.

    Raises INVALID_UPDATE_VERSION if the feature is unknown, if the requested version is not the present version, or
    if the upgrade type is unknown.
    """
    if update.upgrade_type not in set(UpgradeType):
        why = f"the upgrade type is {update.upgrade_type}, but must be 1, 2 or 3"
    elif update.feature not in LEVELS:
        why = f"this broker does not have the feature; its features are {', '.join(LEVELS)}"
    elif update.max_version_level != LEVELS[update.feature]:
        why = f"this broker has only version {LEVELS[update.feature]}"
    else:
        return
    raise KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION, f"feature {update.feature}, version {update.max_version_level}: {why}"
    )
