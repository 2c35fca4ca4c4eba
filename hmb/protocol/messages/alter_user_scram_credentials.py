"""AlterUserScramCredentials (51): add, change and remove credentials of users for SCRAM (KIP-554)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class AlterUserScramCredentialsRequest(
    Request, api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    """The credentials to remove, and the credentials to store. The request contains no password."""

    class ScramCredentialDeletion(Struct):
        name:      str = t.string()
        mechanism: int = t.int8()

    class ScramCredentialUpsertion(Struct):
        """A new or changed credential of one user for one SCRAM mechanism.

        `repr` hides the salted password, because anyone who knows it can log in as the user.
        """

        name:            str   = t.string()
        mechanism:       int   = t.int8()
        iterations:      int   = t.int32()
        salt:            bytes = t.bytestring()
        salted_password: bytes = t.bytestring()

        def __repr__(self) -> str:
            return f"{type(self).__qualname__}(name={self.name!r}, mechanism={self.mechanism}, [hidden])"

    deletions:  list[ScramCredentialDeletion]  = t.array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = t.array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResponse(
    Response, api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    """An error code for each user in the request."""

    class AlterUserScramCredentialsResult(Struct):
        user:          str        = t.string()
        error_code:    int        = t.int16()
        error_message: str | None = t.string(nullable="0+")

    throttle_time_ms: int                                   = t.int32()
    results:          list[AlterUserScramCredentialsResult] = t.array(AlterUserScramCredentialsResult)
