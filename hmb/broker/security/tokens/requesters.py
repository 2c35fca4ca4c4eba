"""Decides which connections may send requests about delegation tokens.

A delegation token lets other programs log in under the name of the client that has created the token. A client that is
not authenticated has no name, so the broker refuses its requests about tokens. The broker also refuses the requests of
a client that has itself logged in with a token. Otherwise, a thief of one token could create new tokens again and
again, and keep access for ever.
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
