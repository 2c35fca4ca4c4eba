"""The SASL mechanisms that HMB offers, each with a function that begins a login (an exchange of messages)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hmb.broker.security import users
from hmb.broker.security.login import Exchange
from hmb.broker.security.plain import PlainExchange
from hmb.broker.security.scram import ScramExchange
from hmb.broker.security.settings import ListenerSecurity
from hmb.broker.security.store import SecurityStore
from hmb.broker.security.tokens.delegation import DelegationTokens
from hmb.broker.security.tokens.oauthbearer import OauthExchange
from hmb.security.protocols import OAUTH_MECHANISM, PLAIN_MECHANISM
from hmb.security.scram import SCRAM_MECHANISMS


def mechanisms_of(
    security: ListenerSecurity, store: SecurityStore, tokens: DelegationTokens
) -> dict[str, Callable[[], Exchange]]:
    """Return a dictionary that contains each mechanism of a listener, for example PLAIN.

    The value of a mechanism is a function that begins a login with this mechanism.
    """
    exchanges: dict[str, Callable[[], Exchange]] = {PLAIN_MECHANISM: partial(PlainExchange, security.plain_users)}
    for name, mechanism in SCRAM_MECHANISMS.items():
        exchanges[name] = partial(ScramExchange, mechanism, partial(users.find, store), tokens.find)
    if security.check_token is not None:
        exchanges[OAUTH_MECHANISM] = partial(OauthExchange, security.check_token)
    return {name: exchanges[name] for name in security.mechanisms}
