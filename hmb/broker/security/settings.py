"""The security of each listener: the settings of TLS and SASL in `server.properties`.

A setting can have a value for one listener, under a name with the prefix `listener.name.` and the listener's name in
lower case. This value has precedence over the value without the prefix:
    ssl.client.auth=none
    listener.name.internal.ssl.client.auth=required

A listener can offer several SASL mechanisms, and a setting can have a different value for each of them. The
name of the mechanism then follows the name of the listener. For example, this setting applies only to the
mechanism OAUTHBEARER of the listener `internal`: `listener.name.internal.oauthbearer.sasl.jaas.config`.

If `server.properties` contains a setting that can restrict access, but HMB does not support the setting, the
broker does not start. The administrator relies on this setting, so the broker must not ignore it. The function
`check_honoured` finds these settings by their names. For example, a setting can restrict access if its name
begins with `ssl.` or `sasl.`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hmb.broker.config.broker import BROKER_KEYS
from hmb.broker.config.keys import ConfigError, ConfigKey, nearest, split_list
from hmb.broker.config.limits import LIMIT_NAMES, LISTENER_LIMITS
from hmb.broker.config.security import AUTHORIZATION, SECURITY
from hmb.broker.security.jaas import (
    MODULES,
    JaasError,
    check_oauth,
    parse_jaas,
    parse_users,
    plain_users,
)
from hmb.broker.security.tokens.oauth_settings import HANDLER, token_check
from hmb.protocol.enums import ConfigType
from hmb.security.protocols import HIDDEN, NO_KERBEROS, OAUTH_MECHANISM, PLAIN_MECHANISM, SecurityProtocol

if TYPE_CHECKING:
    from hmb.broker.security.acls.authorizer import Authorizer
    from hmb.broker.security.tls import TlsListener
    from hmb.broker.security.tokens.oauthbearer import Check

KEYS = {key.name: key for key in SECURITY}
DEFAULTS = {name: text for name, key in KEYS.items() if (text := key.default_text) is not None}
RESTRICTING = re.compile(
    r"listener\.name\..*|ssl\..*|sasl\..*|.*\.sasl\..*|security\..*|authorizer\..*|principal\..*|super\.users"
    r"|allow\.everyone\..*|.*callback\.handler\.class.*|max\.connections\.per\..*|max\.connection\..*"
    r"|quota\..*|controller\.quota\..*|client\.quota\..*"
)
JAAS = "sasl.jaas.config"
SESSION = "connections.max.reauth.ms"  # can have a value for each listener, and for each mechanism of a listener
# If a listener has an unknown setting, the broker does not start, because the setting can restrict access.
# `num.network.threads` restricts no access, so the broker ignores it. (HMB has one thread per connection.)
NO_EFFECT = {"num.network.threads"}
MECHANISM_NAME = re.compile(rf"(?P<mechanism>{'|'.join(MODULES).lower()})\.(?P<base>.+)")
AUTHORIZATION_NAMES = [key.name for key in AUTHORIZATION]
PRINCIPAL = re.compile(r"\w+:.+")
PREFIX = re.compile(r"listener\.name\.([^.]+)\.(.+)")


@dataclass(frozen=True)
class ListenerSecurity:
    """The security of one listener. `tls` is None if the listener does not use TLS."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: TlsListener | None = None
    mechanisms: Sequence[str] = ()  # the SASL mechanisms of the listener
    plain_users: Mapping[str, str] = field(default_factory=dict, repr=False)  # the users of PLAIN and their passwords
    check_token: Check | None = None  # the check of the tokens of OAUTHBEARER
    sessions: Mapping[str, float] = field(default_factory=dict)  # mechanism -> longest session in seconds (0: no limit)


PLAIN = ListenerSecurity()


def authorizer_of(properties: Mapping[str, str]) -> Authorizer | None:
    """Return the authorizer that the settings describe, or None. Raises ConfigError."""
    given = {name: properties[name] for name in AUTHORIZATION_NAMES if properties.get(name, "").strip()}
    values = {name: str(KEYS[name].parse(text)) for name, text in given.items()}
    if not values.get("authorizer.class.name"):
        return None
    from hmb.broker.security.acls.authorizer import Authorizer  # Only a broker with ACLs needs this module.

    users = [name.strip() for name in values.get("super.users", "").split(";") if name.strip()]
    if wrong := [name for name in users if not PRINCIPAL.fullmatch(name)]:
        problem = f"{wrong[0]!r} does not have the form User:name; several names are separated by semicolons"
        raise ConfigError(problem, "super.users", values["super.users"])
    return Authorizer(users, allows_without_acl=values.get("allow.everyone.if.no.acl.found") == "True")


def unopened_listeners(properties: Mapping[str, str]) -> set[str]:
    """Return the names of the listeners that only Kafka's controllers use. HMB does not open them."""
    return {name.upper() for name in split_list(properties.get("controller.listener.names", ""))}


def listener_security(
    properties: Mapping[str, str], protocols: Mapping[str, SecurityProtocol]
) -> dict[str, ListenerSecurity]:
    """Return the security of each listener. `protocols` maps listener names to protocols.

    Raises ConfigError for a wrong value, and for an unsupported setting that can restrict access.
    """
    check_honoured(properties, {*protocols, *unopened_listeners(properties)})
    return {name: _security_of(name, protocol, properties) for name, protocol in protocols.items()}


def check_honoured(properties: Mapping[str, str], listeners: set[str]) -> None:
    """Raise ConfigError if a setting in `properties` can restrict access, but HMB does not support this setting.

    If HMB ignored the setting, it would accept clients or requests that the administrator wants to refuse. Also
    raise ConfigError if a setting belongs to a listener that is not in `listeners`.
    """
    for name in properties:
        if not RESTRICTING.fullmatch(name):
            continue
        base, limits = name, LIMIT_NAMES
        if (prefixed := PREFIX.fullmatch(name)) is not None:
            if prefixed[1].upper() not in listeners:
                raise ConfigError(f"the broker has no listener {prefixed[1].upper()}", name, HIDDEN)
            base, limits = prefixed[2], set(LISTENER_LIMITS)
        is_harmless = prefixed is not None and base in (SESSION, *NO_EFFECT)
        if base not in KEYS and base not in limits and not is_harmless and not _is_of_mechanism(base):
            problem = "HMB does not have this setting, and it may restrict access, so the broker does not start; "
            raise ConfigError(f"{problem}remove the setting{nearest(base, KEYS)}", name, HIDDEN)


def _is_of_mechanism(name: str) -> bool:
    """Return whether `name` is a setting with a SASL mechanism's prefix, such as `plain.sasl.jaas.config`."""
    match = MECHANISM_NAME.fullmatch(name)
    if match is None:
        return False
    base = match["base"]
    is_of_oauth = base == HANDLER or (base.startswith("sasl.oauthbearer.") and base in KEYS)
    return base in (JAAS, SESSION) or (is_of_oauth and match["mechanism"] == OAUTH_MECHANISM.lower())


def values_of(listener: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the values of one listener's security settings, including the defaults. Raises ConfigError.

    The keys of the result are the names of the settings without the prefix of the listener.
    """
    prefix = f"listener.name.{listener.lower()}."
    given = {name: name for name in properties if name in KEYS}  # the name without the prefix -> the name in the file
    given |= {base: name for name in properties if (base := name.removeprefix(prefix)) != name and base in KEYS}
    return DEFAULTS | {base: _checked(KEYS[base], properties[name], name) for base, name in given.items()}


def _checked(key: ConfigKey, text: str, given: str) -> str:
    """Return the value of a setting in a standard spelling, for example `True` for `true`.

    Raises ConfigError if the value is wrong. The function does not check or change passwords, so the error message
    never contains one.
    """
    return text if key.type is ConfigType.PASSWORD else str(key.parse(text, given))


def _security_of(name: str, protocol: SecurityProtocol, properties: Mapping[str, str]) -> ListenerSecurity:
    values = values_of(name, properties)
    tls = _tls_of(name, values) if protocol.has_tls else None
    mechanisms = _mechanisms_of(name, values) if protocol.has_sasl else []
    users = _users_of(name, mechanisms, values, properties)
    check = token_check(name, _oauth_values(name, values, properties)) if OAUTH_MECHANISM in mechanisms else None
    sessions = {mechanism: _session_of(name, mechanism, properties) for mechanism in mechanisms}
    return ListenerSecurity(protocol, tls, mechanisms, users, check, sessions)


def _session_of(listener: str, mechanism: str, properties: Mapping[str, str]) -> float:
    """Return for how many seconds a login is valid, or 0 if there is no limit.

    Users set this time in ms with the setting `connections.max.reauth.ms`. If the setting has several values, the
    function uses the first of these values that exists:

    1. the value for this mechanism on this listener
    2. the value for this mechanism
    3. the value for this listener
    4. the value for all logins
    """
    prefixes = ["", f"listener.name.{listener.lower()}.", *_mechanism_prefixes(listener, mechanism)]
    given = [prefix + SESSION for prefix in prefixes if prefix + SESSION in properties]
    if not given:
        return 0
    return float(BROKER_KEYS[SESSION].parse(properties[given[-1]], given[-1])) / 1000


def _oauth_values(listener: str, values: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of OAUTHBEARER for a listener.

    If the same setting has a value for the mechanism and a value for the whole listener, the value for the mechanism
    applies.
    """
    found = dict(values)
    for prefix in _mechanism_prefixes(listener, OAUTH_MECHANISM):
        found |= {
            base: properties[name] if base == HANDLER else _checked(KEYS[base], properties[name], name)
            for name in properties
            if (base := name.removeprefix(prefix)) != name and (base == HANDLER or base in KEYS)
        }
    return found


def _mechanism_prefixes(listener: str, mechanism: str) -> list[str]:
    """Return the prefix of a mechanism's settings for all listeners, and the prefix for one listener.

    A setting for one listener takes precedence.
    """
    return [f"{mechanism.lower()}.", f"listener.name.{listener.lower()}.{mechanism.lower()}."]


def _mechanisms_of(listener: str, values: Mapping[str, str]) -> list[str]:
    given = values["sasl.enabled.mechanisms"]
    names = split_list(given)
    if unknown := [name for name in names if name not in MODULES]:
        offered = f"HMB offers {', '.join(MODULES)}"
        kerberos = NO_KERBEROS if "GSSAPI" in unknown else ""
        problem = f"listener {listener}: {', '.join(unknown)} is not a mechanism of HMB; {offered}{kerberos}"
        raise ConfigError(problem, "sasl.enabled.mechanisms", given)
    if not names:
        raise ConfigError(f"listener {listener}: enable at least one mechanism", "sasl.enabled.mechanisms", given)
    return names


def _users_of(
    listener: str, mechanisms: Sequence[str], values: Mapping[str, str], properties: Mapping[str, str]
) -> dict[str, str]:
    """Return the users of the mechanism PLAIN, with their passwords, for one listener.

    The users come from the setting `sasl.plain.users` and from the JAAS line of PLAIN. A JAAS line is a setting in
    Java's format (jaas.py). Other mechanisms of the listener can also have JAAS lines. The function checks these
    lines, but they contain no users of PLAIN. Raises ConfigError if a line is wrong, or if the listener offers
    PLAIN without any user.
    """
    name, users = "sasl.plain.users", dict[str, str]()
    try:
        if PLAIN_MECHANISM in mechanisms:
            users = parse_users(values.get(name, ""))
        for mechanism in mechanisms:
            given = [prefix + JAAS for prefix in _mechanism_prefixes(listener, mechanism)]
            if given := [each for each in given if each in properties]:
                name = given[-1]
                users |= _jaas_users(properties[name], mechanism)
    except JaasError as error:
        raise ConfigError(str(error), name, HIDDEN) from error
    if PLAIN_MECHANISM in mechanisms and not users:
        example = f"listener.name.{listener.lower()}.plain.sasl.jaas.config"
        problem = f"listener {listener}: PLAIN has no users; set {example} or this setting"
        raise ConfigError(problem, "sasl.plain.users", "")
    return users


def _jaas_users(line: str, mechanism: str) -> dict[str, str]:
    """Check the JAAS line of a mechanism. For PLAIN, return the users in the line.

    The result is a dict: name -> password. For any mechanism other than PLAIN, the dict is empty. Raises JaasError
    if the line is wrong.
    """
    options = parse_jaas(line, mechanism)
    if mechanism == OAUTH_MECHANISM:
        check_oauth(options)
    return plain_users(options) if mechanism == PLAIN_MECHANISM else {}


def _tls_of(listener: str, values: Mapping[str, str]) -> TlsListener:
    # The imports in this function load OpenSSL and take 16 ms. Only a broker with TLS needs them.
    from hmb.broker.security.mapping_rules import parse_rules
    from hmb.broker.security.tls import TlsListener
    from hmb.security.stores import TlsSettingError, TlsSettings

    rules = values["ssl.principal.mapping.rules"]
    try:
        mapping = parse_rules(rules)
    except ValueError as error:
        raise ConfigError(str(error), "ssl.principal.mapping.rules", rules) from error
    try:
        return TlsListener(TlsSettings.from_properties(values), values["ssl.client.auth"], mapping)
    except TlsSettingError as error:
        value = HIDDEN if KEYS[error.setting].type is ConfigType.PASSWORD else values.get(error.setting, "")
        raise ConfigError(f"listener {listener}: {error.problem}", error.setting, value) from error
