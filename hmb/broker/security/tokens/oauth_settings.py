"""The settings of a listener for OAUTHBEARER: where the public keys are, and which claims a token must have.

By default, Kafka's broker accepts tokens without a signature. An administrator has to set a handler that verifies
signatures. HMB verifies signatures by default, and needs the address of the public keys in the setting
`sasl.oauthbearer.jwks.endpoint.url`. HMB accepts tokens without a signature only if an administrator sets Kafka's
handler for such tokens (`sasl.server.callback.handler.class`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from hmb.broker.config.keys import ConfigError, split_list
from hmb.security import web_addresses
from hmb.security.protocols import OAUTH_MECHANISM

if TYPE_CHECKING:
    from hmb.broker.security.tokens.oauthbearer import Check

LOGGER = logging.getLogger(__name__)
HANDLER = "sasl.server.callback.handler.class"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
VERIFIES = f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler"
UNSECURED = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
KEYS_ADDRESS = "sasl.oauthbearer.jwks.endpoint.url"


def token_check(listener: str, values: Mapping[str, str]) -> Check:
    """Return the function that checks the tokens of clients on a listener.

    `values` contains all settings of the listener. Raises ConfigError if a setting is wrong, if the package PyJWT
    is missing, or if the public keys cannot be loaded.
    """
    handler, address = values.get(HANDLER, ""), values.get(KEYS_ADDRESS, "")
    if handler not in ("", VERIFIES, UNSECURED):
        raise ConfigError(f"listener {listener}: the handler must be {VERIFIES} or {UNSECURED}", HANDLER, handler)
    try:
        # The two modules import the package PyJWT, which some installations do not have. Only a listener with
        # OAUTHBEARER needs them, so the import is in this function.
        from hmb.broker.security.tokens import checking, public_keys
    except ImportError:
        problem = f"listener {listener}: OAUTHBEARER needs the package PyJWT; install hmb[oauth]"
        raise ConfigError(problem, "sasl.enabled.mechanisms", OAUTH_MECHANISM) from None
    expected = checking.ExpectedClaims(
        audiences=split_list(values["sasl.oauthbearer.expected.audience"]),
        issuer=values.get("sasl.oauthbearer.expected.issuer") or None,
        name_claim=values["sasl.oauthbearer.sub.claim.name"],
        clock_skew=float(values["sasl.oauthbearer.clock.skew.seconds"]),
    )
    if handler == UNSECURED:
        if address:
            why = "is set, but the handler for unsecured tokens verifies nothing; remove this setting"
            raise ConfigError(why, KEYS_ADDRESS, address)
        LOGGER.warning("listener %s accepts tokens without a signature: every client can use any name", listener)
        return partial(checking.check_unsecured, expected)
    if not address:
        problem = f"listener {listener}: OAUTHBEARER needs the public keys of the identity provider"
        raise ConfigError(f"{problem}; set the address of these keys (file:///... or https://...)", KEYS_ADDRESS, "")
    if not web_addresses.is_safe(address):
        raise ConfigError(web_addresses.PROBLEM, KEYS_ADDRESS, address)
    refresh = float(values["sasl.oauthbearer.jwks.endpoint.refresh.ms"]) / 1000
    try:
        return checking.SignedTokens(public_keys.PublicKeys(address, refresh), expected).check
    except public_keys.KeysError as error:
        raise ConfigError(f"listener {listener}: cannot load the public keys: {error}", KEYS_ADDRESS, address) from None
