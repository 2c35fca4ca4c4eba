"""How a client declares its settings: one line for each setting, with its type, default, Kafka name and purpose.

`Producer` and `Consumer` take their settings as keyword arguments. A typed dictionary declares them, so that a type
checker knows every name and type::

    class ProducerSettings(TypedDict, total=False):
        linger_ms: Annotated[float, Declared(5, "linger.ms", milliseconds, "How long (ms) a batch waits for records.")]

The line that declares a setting is the only source of its default, of the error for a misspelled name, of its
documentation, and of its name in a `client.properties` file.

A keyword has Kafka's name with underscores, without `.ms` if the keyword counts seconds. Some of Kafka's settings have
no keyword. A setting that only concerns a Java client (a serializer class) is accepted and has no effect. A setting
that protects data and that HMB's client does not support (TLS, SASL) is an error.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from hmb.protocol.errors import HmbError

MAX_INT32 = 2**31 - 1


class SettingError(HmbError, ValueError):
    """A value that a setting cannot have."""

    def __init__(self, name: str, text: str, why: str) -> None:
        super().__init__(f"{name}={text}: {why}")
        self.name = name


class Declared(NamedTuple):
    """The declaration of one setting.

    `kafka_names` contains Kafka's names of the setting, separated by spaces. "" means that Kafka has no such setting.
    `read` parses the text in a properties file. It raises ValueError with a description of the valid texts.
    """

    default: Any
    kafka_names: str
    read: Callable[[str], Any]
    purpose: str


class Setting(NamedTuple):
    """The keyword for one of Kafka's names, and the function that reads the value.

    An empty keyword means that the client accepts and ignores the setting.
    """

    keyword: str
    read: Callable[[str], Any]


def milliseconds(text: str) -> float:
    """Read a number of milliseconds, as Kafka writes times."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError("must be a number") from None
    if not 0 <= number <= MAX_INT32:
        raise ValueError("must be a number from 0 on that fits into 32 bits")
    return number


def seconds(text: str) -> float:
    """Read a number of milliseconds as seconds."""
    return milliseconds(text) / 1000


def time_limit(text: str) -> float:
    """Read a number of milliseconds above 0 as seconds."""
    limit = seconds(text)
    if not limit:
        raise ValueError("must be above 0")
    return limit


def integer(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise ValueError("must be a whole number") from None


def amount(text: str) -> int:
    """Read a whole number from 0 on."""
    number = integer(text)
    if number < 0:
        raise ValueError("must be a whole number from 0 on")
    return number


def boolean(text: str) -> bool:
    """Read `true` or `false`."""
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _plaintext(text: str) -> None:
    if text.upper() != "PLAINTEXT":
        raise ValueError("this client speaks neither TLS nor SASL; use PLAINTEXT")


COMMON = {
    "bootstrap.servers": Setting("bootstrap_servers", str),
    "client.id": Setting("client_id", str),
    "request.timeout.ms": Setting("request_timeout", time_limit),
    "security.protocol": Setting("", _plaintext),
}
"""The settings that every client has, by Kafka's names."""


@cache
def declarations(settings: type) -> dict[str, Declared]:
    """Return the declarations in a typed dictionary of settings, by keyword."""
    hints = get_type_hints(settings, include_extras=True)
    return {keyword: hint.__metadata__[0] for keyword, hint in hints.items()}


def with_defaults(settings: type, given: Mapping[str, Any], client: str) -> dict[str, Any]:
    """Return all settings of a client: the given values, and defaults for the other settings.

    Raises TypeError for an unknown keyword; the message names the nearest known one.
    """
    declared = declarations(settings)
    for keyword in given:
        if keyword not in declared:
            near = difflib.get_close_matches(keyword, declared, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"{client} has no setting {keyword!r}{hint}")
    return {keyword: given.get(keyword, setting.default) for keyword, setting in declared.items()}


def shows_settings(settings: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate an `__init__` that takes settings, so that `help()` and shells show each keyword with its default."""

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
    """Return a client's settings by Kafka's names, including the settings that every client has.

    `ignored` are names of settings that only concern Java clients.
    """
    found = COMMON | {name: Setting("", str) for name in ignored}
    for keyword, setting in declarations(settings).items():
        for name in setting.kafka_names.split():
            found[name] = Setting(keyword, setting.read)
    return found


class Keywords(NamedTuple):
    """Keyword arguments for a client, and the names in a properties file that are not settings of that client."""

    keywords: dict[str, Any]
    unknown: list[str]


def keywords(known: Mapping[str, Setting], texts: Mapping[str, str]) -> Keywords:
    """Read settings under Kafka's names (`linger.ms`) into keyword arguments (`linger_ms`).

    `known` comes from `by_kafka_names`. Raises SettingError for a value that a setting cannot have.
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
        if known[name].keyword:
            found[known[name].keyword] = value
    return Keywords(found, unknown)
