"""The description of a setting: its name, type, default, allowed values and purpose.

A setting is declared once. A setting that has an effect is a field of `LogConfig` or `BrokerConfig`, where the code
that uses it finds it. A setting without an effect is in no_effect.py: clients and tools set it, so the broker has to
accept it. The broker uses the declarations to parse `server.properties` and the settings of topics, to answer
DescribeConfigs, and to find out which settings are dynamic.

The type of a number follows from its maximum: Kafka has ints and longs, and a setting up to 2^31-1 is an int.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hmb.protocol.enums import ConfigType
from hmb.protocol.errors import HmbError
from hmb.protocol.primitives import LONGEST_STRING
from hmb.storage.config import INT_MAX


class ConfigError(HmbError):
    """An error about a value that a setting cannot have. The message names the setting and the allowed values."""

    def __init__(self, problem: str, name: str = "", value: str = "") -> None:
        super().__init__(problem, name, value)
        self.problem, self.name, self.value = problem, name, value

    def __str__(self) -> str:
        return f"{self.name}={self.value}: {self.problem}" if self.name else self.problem


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """The declaration of one setting."""

    name: str
    type: ConfigType
    default: Any  # None if the setting has no value until a client sets one
    doc: str
    minimum: float = -math.inf
    maximum: float = math.inf
    choices: tuple[str, ...] = ()  # the allowed values, or the allowed items of a list
    pattern: str = ""  # for a list: a regular expression for its items
    dynamic: bool = False  # whether clients may alter the setting while the broker runs
    field: str = ""  # the field of LogConfig or BrokerConfig; empty if the setting has no effect

    @classmethod
    def of(cls, name: str, field: dataclasses.Field[Any]) -> ConfigKey:
        """Return the setting that a field of `LogConfig` or `BrokerConfig` declares."""
        declared = {key: value for key, value in field.metadata.items() if key not in ("name", "is_list")}
        type = _number_type(declared["maximum"]) if field.type == "int" else TYPES[str(field.type)]
        if field.metadata.get("is_list"):
            type = ConfigType.LIST
        return cls(name=name, type=type, default=field.default, field=field.name, **declared)

    def parse(self, text: str, name: str = "") -> float | str | bool:
        """Return the value of a text. Raises ConfigError, whose message contains `name`."""
        name = name or self.name
        check_length(text, name)
        if self.type is ConfigType.LIST:
            return self._parse_list(text, name)
        value: float | str | bool = text
        if self.type is ConfigType.BOOLEAN:
            if text.strip().lower() not in ("true", "false"):
                raise ConfigError("must be true or false", name, text)
            value = text.strip().lower() == "true"
        elif self.type is not ConfigType.STRING:
            value = self._parse_number(text, name)
        if self.choices and self.text(value) not in self.choices:
            raise ConfigError(f"must be one of {', '.join(self.choices)}", name, text)
        return value

    def _parse_number(self, text: str, name: str) -> float:
        is_whole = self.type is not ConfigType.DOUBLE
        try:
            value = int(text) if is_whole else float(text)
            if "_" in text:  # Python would read 1_000 as a number, but Kafka does not.
                raise ValueError
        except ValueError:
            raise ConfigError(f"must be a {'whole ' if is_whole else ''}number", name, text) from None
        if value > self.maximum:
            raise ConfigError(f"must be at most {self.maximum}", name, text)
        if not value >= self.minimum:  # `not >=` is also true for NaN, so NaN is refused.
            raise ConfigError(f"must be at least {self.minimum}", name, text)
        return value

    def _parse_list(self, text: str, name: str) -> str:
        items = split_list(text)
        for item in items:
            if self.choices and item not in self.choices:
                raise ConfigError(f"must be one of {', '.join(self.choices)}, not {item!r}", name, text)
            if not item or (self.pattern and not re.fullmatch(self.pattern, item)):
                raise ConfigError(f"{item!r} is not a valid item of this list", name, text)
        return ",".join(items)

    def text(self, value: object) -> str | None:
        """Return the text of a value, as Java writes it."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float):
            return repr(value).replace("e+", "E").replace("e-", "E-")
        return None if value is None else str(value)

    def normal(self, text: str) -> str:
        """Return the normal form of a value's text. Raises ConfigError."""
        return self.text(self.parse(text)) or ""

    @property
    def default_text(self) -> str | None:
        return self.text(self.default)


TYPES = {"bool": ConfigType.BOOLEAN, "float": ConfigType.DOUBLE, "str": ConfigType.STRING}


def _number_type(maximum: float) -> ConfigType:
    return ConfigType.INT if maximum <= INT_MAX else ConfigType.LONG


MOST_LETTERS_OFF = 6  # the greatest difference in length between a misspelled name and the intended one


def check_length(text: str, name: str) -> None:
    """Raise ConfigError if the value of setting `name` is too long for a string of DescribeConfigs."""
    if (size := len(text.encode())) > LONGEST_STRING:
        raise ConfigError(f"has {size} bytes, at most {LONGEST_STRING} are allowed", name, text)


def split_list(text: str) -> list[str]:
    """Return the items of a list, each once. An empty text is an empty list."""
    return list(dict.fromkeys(item.strip() for item in text.split(","))) if text.strip() else []


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the end of a message about an unknown name: the known name that was probably intended, if there is one.

    Only names of a similar length with the same first letter are compared. A request may contain thousands of unknown
    names, and a comparison takes some 20 microseconds.
    """
    alike = [other for other in known if other[:1] == name[:1] and abs(len(other) - len(name)) <= MOST_LETTERS_OFF]
    matches = difflib.get_close_matches(name, alike, 1, cutoff)
    return f", did you mean {matches[0]!r}?" if matches else ""
