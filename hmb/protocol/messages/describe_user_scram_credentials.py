"""DescribeUserScramCredentials (50): list which users have credentials for SCRAM (KIP-554)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeUserScramCredentialsRequest(
    Request, api_key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    """The users to describe. Null or an empty list means all users."""

    class UserName(Struct):
        name: str = t.string()

    users: list[UserName] | None = t.array(UserName, nullable="0+")


class DescribeUserScramCredentialsResponse(
    Response, api_key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    """For each SCRAM credential: the user, the mechanism and the number of hash iterations, but no secret."""

    class DescribeUserScramCredentialsResult(Struct):
        class CredentialInfo(Struct):
            mechanism:  int = t.int8()
            iterations: int = t.int32()

        user:             str                  = t.string()
        error_code:       int                  = t.int16()
        error_message:    str | None           = t.string(nullable="0+")
        credential_infos: list[CredentialInfo] = t.array(CredentialInfo)

    throttle_time_ms: int                                      = t.int32()
    error_code:       int                                      = t.int16()
    error_message:    str | None                               = t.string(nullable="0+")
    results:          list[DescribeUserScramCredentialsResult] = t.array(DescribeUserScramCredentialsResult)
