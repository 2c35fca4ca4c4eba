"""Contains the methods of `Admin` that create, renew, expire and list delegation tokens (KIP-48).

The module `hmb.broker.security.tokens.delegation` explains delegation tokens. The `Admin` object must log in with SASL,
or use a TLS certificate. To log in with a token, a client uses this setting:
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required
        username="TOKEN_ID" password="HMAC" tokenauth="true";
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any, NamedTuple

from hmb.client.admin.brokers import Brokers
from hmb.client.errors import response_error
from hmb.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from hmb.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from hmb.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from hmb.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest


class DelegationToken(NamedTuple):
    """One token. Times are in ms. `hmac` is the password of the token, in base64. `repr` hides this password."""

    token_id: str
    hmac: str
    owner: str
    requester: str
    renewers: list[str]
    issue_time: int
    expiry_time: int
    max_time: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}(token_id={self.token_id!r}, owner={self.owner!r}, [hidden])"


def create_token(
    brokers: Brokers, renewers: Iterable[str] = (), max_lifetime_ms: int = -1, owner: str | None = None
) -> DelegationToken:
    """Create a delegation token for the principal `owner`, for example `User:alice`.

    If `owner` is None, the user of this `Admin` object owns the token. With `max_lifetime_ms=-1`, the token gets
    the longest lifetime that the broker allows. Needs Kafka 1.1, or Kafka 3.3 to set `owner`.
    """
    allowed = list(renewers)
    request = CreateDelegationTokenRequest(max_lifetime_ms=max_lifetime_ms)
    request.renewers = [CreateDelegationTokenRequest.CreatableRenewers(**_parts(each)) for each in allowed]
    if owner is not None:
        request.owner_principal_type, request.owner_principal_name = _parts(owner).values()
    it: CreateDelegationTokenResponse = _checked(brokers.cluster.send(request))
    return DelegationToken(
        token_id=it.token_id,
        hmac=base64.b64encode(it.hmac).decode(),
        owner=f"{it.principal_type}:{it.principal_name}",
        requester=f"{it.token_requester_principal_type}:{it.token_requester_principal_name}".strip(":"),
        renewers=allowed,
        issue_time=it.issue_timestamp_ms,
        expiry_time=it.expiry_timestamp_ms,
        max_time=it.max_timestamp_ms,
    )


def renew_token(brokers: Brokers, hmac: str, period_ms: int = -1) -> int:
    """Let a token expire later: `period_ms` from now. Return its new expiry time in ms.

    `hmac` is the HMAC of the token in base64. With `period_ms=-1`, the broker takes the period from its own setting.
    """
    response = brokers.cluster.send(RenewDelegationTokenRequest(hmac=_decoded(hmac), renew_period_ms=period_ms))
    return int(_checked(response).expiry_timestamp_ms)


def expire_token(brokers: Brokers, hmac: str, period_ms: int = -1) -> int:
    """Set a token's expiry time to `period_ms` from now. Return the new time in ms.

    `hmac` is the HMAC of the token in base64. If `period_ms` is negative, the broker removes the token immediately.
    The method then returns `period_ms` instead.
    """
    response = brokers.cluster.send(ExpireDelegationTokenRequest(hmac=_decoded(hmac), expiry_time_period_ms=period_ms))
    return int(_checked(response).expiry_timestamp_ms)


def list_tokens(brokers: Brokers, owners: Iterable[str] | None = None) -> list[DelegationToken]:
    """Return the tokens of `owners`, or of all owners if `owners` is None.

    The result contains only the tokens that the user of this `Admin` object is allowed to see.
    """
    kind = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    wanted = None if owners is None else [kind(**_parts(each)) for each in owners]
    response = _checked(brokers.cluster.send(DescribeDelegationTokenRequest(owners=wanted)))
    return [
        DelegationToken(
            token_id=it.token_id,
            hmac=base64.b64encode(it.hmac).decode(),
            owner=f"{it.principal_type}:{it.principal_name}",
            requester=f"{it.token_requester_principal_type}:{it.token_requester_principal_name}".strip(":"),
            renewers=[f"{each.principal_type}:{each.principal_name}" for each in it.renewers],
            issue_time=it.issue_timestamp,
            expiry_time=it.expiry_timestamp,
            max_time=it.max_timestamp,
        )
        for it in response.tokens
    ]


def _parts(principal: str) -> dict[str, str]:
    kind, separator, name = principal.partition(":")
    if not (kind and separator and name):
        raise ValueError(f"the principal {principal!r} does not have the form User:name")
    return {"principal_type": kind, "principal_name": name}


def _decoded(hmac: str) -> bytes:
    try:
        return base64.b64decode(hmac, validate=True)
    except binascii.Error:
        raise ValueError("the HMAC of the token is not base64 text") from None


def _checked(response: Any) -> Any:
    if response.error_code:
        raise response_error("delegation token", response.error_code)
    return response
