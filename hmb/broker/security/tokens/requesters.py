"""Decides which connections may send requests about delegation tokens.

A client can create a delegation token. With this token, other programs can log in under the name of the token's
owner, usually this client. The broker refuses requests about tokens from two kinds of clients:
- A client that is not authenticated has no name, so it cannot own a token.
- A client that has itself logged in with a token could be a thief of this token. It could create new tokens
  again and again, and so keep access for ever.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.security.principals import ANONYMOUS
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.create_delegation_token import CreateDelegationTokenResponse


def check_requester(context: RequestContext) -> None:
    """Raise DELEGATION_TOKEN_REQUEST_NOT_ALLOWED if a connection must not send requests about tokens."""
    login = context.client.login
    if context.client.principal == ANONYMOUS or (login is not None and login.is_delegated):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def put_principals(response: CreateDelegationTokenResponse, owner: str, requester: str, version: int) -> None:
    """Write the owner and the requester of a new token into the response.

    A response with an error also contains both names.
    """
    response.principal_type, _, response.principal_name = owner.partition(":")
    if version >= CreateDelegationTokenResponse.first_version("token_requester_principal_type"):
        type_and_name = requester.partition(":")
        response.token_requester_principal_type, _, response.token_requester_principal_name = type_and_name
