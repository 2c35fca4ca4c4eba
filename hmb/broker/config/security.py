"""Declares the settings that concern security: TLS, SASL and authorization.

The broker reads the settings of security when it starts (hmb/broker/security/settings.py). A listener can have its own
value of a setting: `listener.name.internal.ssl.client.auth` applies only to the listener INTERNAL. DescribeConfigs
never returns the value of a setting of the type PASSWORD.
"""

from __future__ import annotations

from hmb.broker.config.keys import ConfigKey
from hmb.broker.config.no_effect import ONE_BROKER
from hmb.protocol.enums import INT64_MAX, ConfigType

OPENSSL = "This setting has no effect: OpenSSL decides."


def _string(name: str, default: str | None, doc: str, *choices: str) -> ConfigKey:
    return ConfigKey(name, ConfigType.STRING, default, doc, choices=choices)


def _list(name: str, default: str, doc: str) -> ConfigKey:
    return ConfigKey(name, ConfigType.LIST, default, doc)


def _long(name: str, default: int, doc: str) -> ConfigKey:
    return ConfigKey(name, ConfigType.LONG, default, doc, 1, INT64_MAX)


def _password(name: str, doc: str) -> ConfigKey:
    return ConfigKey(name, ConfigType.PASSWORD, None, doc)


TLS = [
    _string("ssl.keystore.location", None, "The file with the broker's private key and certificates."),
    _string(
        "ssl.keystore.type", None, "The type of the key store. HMB also recognizes it from the file.",
        "PEM", "PKCS12", "JKS",
    ),
    _password("ssl.keystore.key", "The broker's private key as PEM text, instead of a file."),
    _password("ssl.keystore.certificate.chain", "The broker's certificates as PEM text, instead of a file."),
    _password("ssl.keystore.password", "The password of a key store of the type PKCS12 or JKS."),
    _password("ssl.key.password", "The password of the private key."),
    _string("ssl.truststore.location", None, "The file with the certificates of trusted authorities."),
    _string(
        "ssl.truststore.type", None, "The type of the trust store. HMB also recognizes it from the file.",
        "PEM", "PKCS12", "JKS",
    ),
    _password("ssl.truststore.certificates", "The certificates of trusted authorities as PEM text."),
    _password("ssl.truststore.password", "The password of a trust store of the type PKCS12 or JKS."),
    _string(
        "ssl.client.auth", "none", "Whether a client must prove its name with a certificate.",
        "none", "requested", "required",
    ),
    _list("ssl.enabled.protocols", "TLSv1.2,TLSv1.3", "The versions of TLS that clients may use."),
    _list("ssl.cipher.suites", "", "The cipher suites of TLS 1.2 that clients may use. If it is empty: OpenSSL's."),
    _string(
        "ssl.principal.mapping.rules", "DEFAULT", "Rules that turn the name in a certificate into a principal's name."
    ),
]  # fmt: skip
SASL = [
    _list("sasl.enabled.mechanisms", "GSSAPI", "The mechanisms: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER."),
    _password("sasl.jaas.config", "The users of a mechanism (a prefix of this setting's name), as a JAAS line."),
    _password("sasl.plain.users", "The users of PLAIN: NAME:PASSWORD, separated by commas."),
]
OAUTH = [
    _string("sasl.oauthbearer.jwks.endpoint.url", None, "The address or file:// name of the identity provider's keys."),
    _long("sasl.oauthbearer.jwks.endpoint.refresh.ms", 3_600_000, "The time after which the keys are loaded again."),
    _string("sasl.oauthbearer.expected.issuer", None, "The issuer that a token must name. If it is empty: any issuer."),
    _list("sasl.oauthbearer.expected.audience", "", "A token must name one of these audiences. If it is empty: any."),
    _string("sasl.oauthbearer.sub.claim.name", "sub", "The claim of a token that contains the name of the user."),
    ConfigKey(
        "sasl.oauthbearer.clock.skew.seconds", ConfigType.INT, 30,
        "The tolerated difference in seconds between the clocks of the broker and of the identity provider.", 0, 3600,
    ),
]  # fmt: skip
TOKENS = [
    _password("delegation.token.secret.key", "The secret from which the broker computes delegation tokens."),
    _long("delegation.token.max.lifetime.ms", 604_800_000, "The longest lifetime of a delegation token."),
    _long("delegation.token.expiry.time.ms", 86_400_000, "The time after which a token that nobody renews expires."),
    _long("delegation.token.expiry.check.interval.ms", 3_600_000, "How often the broker removes expired tokens."),
]
AUTHORIZATION = [
    _string(
        "authorizer.class.name", "", "The authorizer, which decides by ACLs. Empty: clients may do everything.",
        "", "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    ),
    _string("super.users", None, "The principals that may do everything: User:alice, separated by semicolons."),
    ConfigKey(
        "allow.everyone.if.no.acl.found", ConfigType.BOOLEAN, False,
        "Whether clients may use a resource for which no ACL exists.",
    ),
]  # fmt: skip
NO_SCOPES = "This setting has no effect, because Kafka and HMB do not use the scopes of a token."
RETRIES = "This setting has no effect: if the keys cannot be loaded, HMB tries again at the next login."
NO_EFFECT = [
    _string("sasl.oauthbearer.scope.claim.name", "scope", NO_SCOPES),
    _long("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 100, RETRIES),
    _long("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", 10_000, RETRIES),
    _string("ssl.protocol", "TLSv1.3", OPENSSL),
    _string("ssl.provider", None, OPENSSL),
    _string("ssl.keymanager.algorithm", "SunX509", OPENSSL),
    _string("ssl.trustmanager.algorithm", "PKIX", OPENSSL),
    _string("ssl.secure.random.implementation", None, OPENSSL),
    _string("ssl.endpoint.identification.algorithm", "https", ONE_BROKER),
    _string("security.inter.broker.protocol", "PLAINTEXT", ONE_BROKER),
    _string("sasl.mechanism.inter.broker.protocol", "GSSAPI", ONE_BROKER),
    _string("sasl.mechanism.controller.protocol", "GSSAPI", ONE_BROKER),
]
SECURITY = [*TLS, *SASL, *OAUTH, *TOKENS, *AUTHORIZATION, *NO_EFFECT]
