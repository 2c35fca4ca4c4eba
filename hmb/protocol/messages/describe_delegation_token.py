"""DescribeDelegationToken (41): list the tokens of some owners, or all tokens (KIP-48)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeDelegationTokenRequest(Request, api_key=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="1-3", flexible="2+"):
    """The principals whose tokens the client requests.

    The response contains the tokens that one of these principals owns, has created, or is allowed to renew. If the
    list is null, the response contains the tokens of all principals.
    """

    class DescribeDelegationTokenOwner(Struct):
        principal_type: str = t.string()
        principal_name: str = t.string()

    owners: list[DescribeDelegationTokenOwner] | None = t.array(DescribeDelegationTokenOwner, nullable="0+")


class DescribeDelegationTokenResponse(
    Response, api_key=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="1-3", flexible="2+"
):
    """The tokens that the requester may see. Times are in ms."""

    class DescribedDelegationToken(Struct):
        """One token. The HMAC is the password of the token, so `repr` does not show it."""

        class DescribedDelegationTokenRenewer(Struct):
            principal_type: str = t.string()
            principal_name: str = t.string()

        principal_type:                 str   = t.string()
        principal_name:                 str   = t.string()
        token_requester_principal_type: str   = t.string("3+")
        token_requester_principal_name: str   = t.string("3+")
        issue_timestamp:                int   = t.int64()
        expiry_timestamp:               int   = t.int64()
        max_timestamp:                  int   = t.int64()
        token_id:                       str   = t.string()
        hmac:                           bytes = t.bytestring()
        renewers: list[DescribedDelegationTokenRenewer] = t.array(DescribedDelegationTokenRenewer)

        def __repr__(self) -> str:
            return f"{type(self).__qualname__}(token_id={self.token_id!r}, [hidden])"

    error_code:       int                            = t.int16()
    tokens:           list[DescribedDelegationToken] = t.array(DescribedDelegationToken)
    throttle_time_ms: int                            = t.int32()


FIRST_VERSION_OF_REQUESTERS = DescribeDelegationTokenResponse.first_version("tokens.token_requester_principal_type")
