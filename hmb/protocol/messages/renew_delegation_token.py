"""RenewDelegationToken (39): make a delegation token valid for a longer time (KIP-48)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class RenewDelegationTokenRequest(Request, api_key=ApiKey.RENEW_DELEGATION_TOKEN, versions="1-2", flexible="2+"):
    """The HMAC of a delegation token, and the time (ms) from now until the renewed token expires.

    A client logs in with the HMAC as its password, so `repr` does not show the HMAC.
    """

    hmac:            bytes = t.bytestring()
    renew_period_ms: int   = t.int64()

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}(renew_period_ms={self.renew_period_ms}, [hidden])"


class RenewDelegationTokenResponse(Response, api_key=ApiKey.RENEW_DELEGATION_TOKEN, versions="1-2", flexible="2+"):
    """A response that contains the new time (ms since 1970) at which the delegation token expires."""

    error_code:          int = t.int16()
    expiry_timestamp_ms: int = t.int64()
    throttle_time_ms:    int = t.int32()
