"""UpdateFeatures (57): change the versions of features that all brokers of a cluster use (KIP-584)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class UpdateFeaturesRequest(Request, api_key=ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+"):
    """The new version of each feature. A version below 1 switches the feature off.

    Version 1 of the request adds `validate_only`, and replaces `allow_downgrade` by `upgrade_type` (KIP-584). The
    values of `upgrade_type` are:

    - 1: the version of the feature must not become lower.
    - 2: the version may become lower, but only if no metadata is lost.
    - 3: the version may become lower, even if metadata is lost.
    """

    class FeatureUpdateKey(Struct):
        feature:           str  = t.string()
        max_version_level: int  = t.int16()
        allow_downgrade:   bool = t.boolean("0")
        upgrade_type:      int  = t.int8("1+", default=1)

    timeout_ms:      int                    = t.int32(default=60_000)
    feature_updates: list[FeatureUpdateKey] = t.array(FeatureUpdateKey)
    validate_only:   bool                   = t.boolean("1+")


class UpdateFeaturesResponse(Response, api_key=ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+"):
    """Whether the features were changed.

    In versions 0 and 1, the response has a result for each feature. From version 2 on, all changes of a request succeed
    or fail together.
    """

    class UpdatableFeatureResult(Struct):
        feature:       str        = t.string()
        error_code:    int        = t.int16()
        error_message: str | None = t.string(nullable="0+")

    throttle_time_ms: int                          = t.int32()
    error_code:       int                          = t.int16()
    error_message:    str | None                   = t.string(nullable="0+")
    results:          list[UpdatableFeatureResult] = t.array(UpdatableFeatureResult, "0-1", ignorable=True)
