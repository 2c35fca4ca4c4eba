"""The declarations of a client's settings: one line for each setting, with type, default, Kafka name and purpose.

`Producer` and `Consumer` take their settings as keyword arguments. A typed dictionary declares these arguments, so that
a type checker knows the name and the type of each setting:
    class ProducerSettings(TypedDict, total=False):
        linger_ms: Annotated[float, Declared(5, "linger.ms", milliseconds, "How long (ms) a batch waits for records.")]

A setting has only one declaration: a line in the typed dictionary `ProducerSettings` or `ConsumerSettings`.
From this line, HMB takes the default value, the documentation, and the name that `client.properties` files use.

A keyword is Kafka's name of the setting, with underscores instead of dots: `linger.ms` becomes `linger_ms`. If HMB's
setting is in seconds, its keyword has no `_ms`: `request.timeout.ms` becomes `request_timeout`.

Some of Kafka's settings only concern Java clients, for example a serializer class. HMB's clients have no keyword
argument for these settings, and ignore them in a `client.properties` file. All settings of TLS and SASL together have
one keyword argument, `security` (hmb/client/security/settings.py).
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple, get_type_hints

from hmb.client.security.settings import NAMES as SECURITY_NAMES
from hmb.client.security.settings import SecuritySettingError, client_security
from hmb.protocol.enums import INT32_MAX
from hmb.protocol.errors import HmbError


class SettingError(HmbError, ValueError):
    """A text is not a valid value of a setting."""

    def __init__(self, name: str, text: str, why: str) -> None:
        super().__init__(f"{name}={text}: {why}")
        self.name = name


class Declared(NamedTuple):
    """The declaration of one setting of a client.

    - `kafka_names` contains Kafka's names for the setting, separated by spaces. It is "" if Kafka has no such
      setting.
    - `read` converts the text of a value in a properties file to the value: for example, "100" to 100. If the text
      is not valid, `read` raises ValueError. The message describes a valid text.
    """

    default: Any
    kafka_names: str
    read: Callable[[str], Any]
    purpose: str


class Setting(NamedTuple):
    """The keyword argument for one of Kafka's settings, and the function that converts the text of its value.

    If the keyword is "", the client accepts the setting and ignores its value.
    """

    keyword: str
    read: Callable[[str], Any]


def milliseconds(text: str) -> float:
    """Return the number of milliseconds that a text contains: "100" becomes 100.0. Raises ValueError."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError("the value must be a number") from None
    if not 0 <= number <= INT32_MAX:
        raise ValueError(f"the value must be a number from 0 to {INT32_MAX}")
    return number


def seconds(text: str) -> float:
    """Convert a text that is a number of milliseconds, and return seconds."""
    return milliseconds(text) / 1000


def time_limit(text: str) -> float:
    """Convert a time limit from ms to seconds: "1500" becomes 1.5. The limit must be greater than 0."""
    limit = seconds(text)
    if not limit:
        raise ValueError("the value must be above 0")
    return limit


def integer(text: str) -> int:
    """Convert a text to a whole number."""
    try:
        return int(text)
    except ValueError:
        raise ValueError("the value must be a whole number") from None


def amount(text: str) -> int:
    """Convert a text to a whole number. The number must not be below 0."""
    number = integer(text)
    if number < 0:
        raise ValueError("the value must be a whole number, 0 or more")
    return number


def boolean(text: str) -> bool:
    """Convert the text "true" or "false"."""
    if text.lower() not in ("true", "false"):
        raise ValueError("the value must be true or false")
    return text.lower() == "true"


# Defaults that several kinds of clients share (producers, consumers, admin clients). Times are in seconds.
CLIENT_ID = "hmb"
REQUEST_TIMEOUT = 30.0
RETRY_FOR = 30.0  # how long a consumer repeats a request after temporary errors
METADATA_MAX_AGE = 300.0

ClientId = Annotated[str, Declared(CLIENT_ID, "client.id", str, "The name of this client in the broker's logs.")]
Security = Annotated[
    Mapping[str, str] | None,
    Declared(None, "", str, "The settings of TLS and SASL, by Kafka's names. None: PLAINTEXT."),
]
SECURITY = "security"  # the name of the keyword argument that contains all settings of TLS and SASL
COMMON = {
    "bootstrap.servers": Setting("bootstrap_servers", str),
    "client.id": Setting("client_id", str),
    "request.timeout.ms": Setting("request_timeout", time_limit),
} | dict.fromkeys(SECURITY_NAMES, Setting(SECURITY, str))
"""The settings that every client has. The keys are Kafka's names of these settings."""


@cache
def declarations(settings: type) -> dict[str, Declared]:
    """Return the declarations of a client's settings. The keys of the dict are keywords such as `linger_ms`.

    `settings` is the typed dictionary in which the settings are declared, for example `ProducerSettings`.
    """
    hints = get_type_hints(settings, include_extras=True)
    return {keyword: hint.__metadata__[0] for keyword, hint in hints.items()}


def with_defaults(settings: type, given: Mapping[str, Any], client: str) -> dict[str, Any]:
    """Return all settings of a client: the values in `given`, and the default of each other setting.

    Raises TypeError for an unknown keyword. The error message suggests a known keyword with a similar name. In the
    message, `client` is the name of the client.
    """
    declared = declarations(settings)
    for keyword in given:
        if keyword not in declared:
            near = difflib.get_close_matches(keyword, declared, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"{client} has no setting {keyword!r}{hint}")
    return {keyword: given.get(keyword, setting.default) for keyword, setting in declared.items()}


def shows_settings(settings: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for an `__init__`: it makes `help()` show each keyword of `settings` and its default.

    Without the decorator, `help()` would show only `**settings`.
    """

    def decorate(init: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(init)
        named = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        keywords = [
            inspect.Parameter(keyword, inspect.Parameter.KEYWORD_ONLY, default=setting.default)
            for keyword, setting in declarations(settings).items()
        ]
        init.__signature__ = signature.replace(parameters=[*named, *keywords])  # type: ignore[attr-defined]
        return init

    return decorate


def by_kafka_names(settings: type, *ignored: str) -> dict[str, Setting]:
    """Return all settings of a client. The keys are Kafka's names of the settings, such as "linger.ms".

    `ignored` contains the names of settings that only concern Java clients. The client accepts and ignores them.
    """
    found = COMMON | {name: Setting("", str) for name in ignored}
    for keyword, setting in declarations(settings).items():
        for name in setting.kafka_names.split():
            found[name] = Setting(keyword, setting.read)
    return found


class Keywords(NamedTuple):
    """The result of reading a properties file: keyword arguments for a client, and the unknown names in the file."""

    keywords: dict[str, Any]
    unknown: list[str]


def keywords(known: Mapping[str, Setting], texts: Mapping[str, str]) -> Keywords:
    """Convert settings of a properties file (`linger.ms`) to keyword arguments (`linger_ms`).

    `known` contains the settings of the client, as `by_kafka_names` returns them. Raises SettingError if the text of a
    setting is not a valid value.
    """
    found: dict[str, Any] = {}
    unknown = []
    for name, text in texts.items():
        if name not in known:
            unknown.append(name)
            continue
        try:
            value = known[name].read(text)
        except ValueError as error:
            raise SettingError(name, text, str(error)) from None
        if known[name].keyword == SECURITY:
            found.setdefault(SECURITY, {})[name] = value
        elif known[name].keyword:
            found[known[name].keyword] = value
    try:
        client_security(found.get(SECURITY))
    except SecuritySettingError as error:
        raise SettingError(error.name, error.shown, error.problem) from None
    return Keywords(found, unknown)
