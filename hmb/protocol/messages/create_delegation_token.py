"""CreateDelegationToken (38): create a token with which other programs can log in as the token's owner (KIP-48)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class CreateDelegationTokenRequest(Request, api_key=ApiKey.CREATE_DELEGATION_TOKEN, versions="1-3", flexible="2+"):
    """The owner of the new token, and the principals that may renew the token.

    If the owner is null, the principal that sends the request becomes the owner. If `max_lifetime_ms` is -1, the token
    gets the longest lifetime that the broker allows.
    """

    class CreatableRenewers(Struct):
        principal_type: str = t.string()
        principal_name: str = t.string()

    owner_principal_type: str | None              = t.string("3+", nullable="3+")
    owner_principal_name: str | None              = t.string("3+", nullable="3+")
    renewers:             list[CreatableRenewers] = t.array(CreatableRenewers)
    max_lifetime_ms:      int                     = t.int64()


class CreateDelegationTokenResponse(Response, api_key=ApiKey.CREATE_DELEGATION_TOKEN, versions="1-3", flexible="2+"):
    """The new token. The field `hmac` is the password of the token, so `repr` does not show it.

    The timestamps are in ms since 1970.
    """

    error_code:                     int   = t.int16()
    principal_type:                 str   = t.string()
    principal_name:                 str   = t.string()
    token_requester_principal_type: str   = t.string("3+")
    token_requester_principal_name: str   = t.string("3+")
    issue_timestamp_ms:             int   = t.int64()
    expiry_timestamp_ms:            int   = t.int64()
    max_timestamp_ms:               int   = t.int64()
    token_id:                       str   = t.string()
    hmac:                           bytes = t.bytestring()
    throttle_time_ms:               int   = t.int32()

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}(error_code={self.error_code}, token_id={self.token_id!r}, [hidden])"
