"""The declaration of a setting: its name, its type, its default, its allowed values and its purpose.

Each setting is declared in one place. A setting that the broker uses is declared as a field of `LogConfig`, of
`BrokerConfig`, or of a part of `BrokerConfig`. Settings that have no effect are declared in no_effect.py. The broker
accepts these settings, because clients and tools of Kafka set them.

The broker uses the declarations of settings for three purposes: to parse `server.properties` and the settings of
topics, to answer DescribeConfigs, and to decide which settings clients may alter while the broker runs.

Kafka has two types for settings that are whole numbers: int (32 bits) and long (64 bits). In HMB, the greatest
allowed value of a setting determines the type. If this value is at most 2^31-1, the type is int. Otherwise, the
type is long.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, dataclass_transform

from hmb.protocol.enums import INT32_MAX, INT64_MAX, ConfigType
from hmb.protocol.errors import HmbError
from hmb.protocol.primitives import LONGEST_STRING


class ConfigError(HmbError):
    """The error for a setting with an invalid value. The message contains the setting's name and the allowed values."""

    def __init__(self, problem: str, name: str = "", value: str = "") -> None:
        super().__init__(problem, name, value)
        self.problem, self.name, self.value = problem, name, value

    def __str__(self) -> str:
        return f"{self.name}={self.value}: {self.problem}" if self.name else self.problem


AS_IN_KAFKA = object()  # the value of `ConfigKey.kafka_default` for settings with the same default as in Kafka


class ConfigKey(NamedTuple):
    """The declaration of one setting: its name, its type, its default and its allowed values."""

    name: str
    type: ConfigType
    default: Any  # None if the setting has no default
    doc: str
    minimum: float = -math.inf
    maximum: float = math.inf
    choices: tuple[str, ...] = ()  # the allowed values, or the allowed items of a list
    pattern: str = ""  # a regular expression for a text, or for the items of a list
    dynamic: bool = False  # whether clients may alter the setting while the broker runs
    field: str = ""  # the name of the field that contains the value of the setting; empty if no field contains it
    kafka_default: Any = AS_IN_KAFKA  # Kafka's default, if HMB has chosen another default

    @classmethod
    def of(cls, name: str, field: dataclasses.Field[Any]) -> ConfigKey:
        """Return the declaration of the setting `name`.

        The method reads the setting's default and metadata from `field`, a field of the class `LogConfig`.
        """
        key: ConfigKey = setting(name, field.default, **field.metadata)
        return key._replace(field=field.name)

    def parse(self, text: str, name: str = "") -> float | str | bool:
        """Convert a text to the value of this setting. Raises ConfigError; the message contains `name`."""
        name = name or self.name
        if self.type is ConfigType.PASSWORD:
            return text  # Do not check a secret: an error message would contain it.
        check_length(text, name)
        if self.type is ConfigType.LIST:
            return self._parse_list(text, name)
        value: float | str | bool = text
        if self.type is ConfigType.BOOLEAN:
            if text.strip().lower() not in ("true", "false"):
                raise ConfigError("the value must be true or false", name, text)
            value = text.strip().lower() == "true"
        elif self.type is not ConfigType.STRING:
            value = self._parse_number(text, name)
        if self.type is ConfigType.STRING and self.pattern and not re.fullmatch(self.pattern, text.strip()):
            raise ConfigError("the value does not have the format that this setting requires", name, text)
        if self.choices and self.text(value) not in self.choices:
            raise ConfigError(f"the value must be one of {', '.join(self.choices)}", name, text)
        return value

    def _parse_number(self, text: str, name: str) -> float:
        is_whole = self.type is not ConfigType.DOUBLE
        try:
            value = int(text) if is_whole else float(text)
            if "_" in text:  # Python accepts 1_000 as a number, but Kafka does not.
                raise ValueError
        except ValueError:
            raise ConfigError(f"the value must be a {'whole ' if is_whole else ''}number", name, text) from None
        if value > self.maximum:
            raise ConfigError(f"the value must be at most {self.maximum}", name, text)
        if not value >= self.minimum:  # `not >=` instead of `<`, so that NaN is refused: `NaN < minimum` is false.
            raise ConfigError(f"the value must be at least {self.minimum}", name, text)
        return value

    def _parse_list(self, text: str, name: str) -> str:
        items = split_list(text)
        for item in items:
            if self.choices and item not in self.choices:
                raise ConfigError(f"each item must be one of {', '.join(self.choices)}, not {item!r}", name, text)
            if not item or (self.pattern and not re.fullmatch(self.pattern, item)):
                raise ConfigError(f"{item!r} is not a valid item of this list", name, text)
        return ",".join(items)

    def text(self, value: object) -> str | None:
        """Convert a value to text, as Kafka (Java) writes it: `true` for True, `1.5E20` for 1.5e+20."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float):
            return repr(value).replace("e+", "E").replace("e-", "E-")
        return None if value is None else str(value)

    def normal(self, text: str) -> str:
        """Convert the text of a value to its normal form: `true` for `TRUE`, `7` for `07`. Raises ConfigError."""
        return self.text(self.parse(text)) or ""

    @property
    def default_text(self) -> str | None:
        return self.text(self.default)

    @property
    def has_own_default(self) -> bool:
        """Whether HMB has chosen a default that differs from Kafka's default."""
        return self.kafka_default is not AS_IN_KAFKA

    @property
    def kafka_default_text(self) -> str | None:
        return self.text(self.kafka_default) if self.has_own_default else self.default_text


def setting(
    name: str,
    default: object,
    doc: str,
    minimum: float = -math.inf,
    maximum: float = INT64_MAX,
    *,
    is_list: bool = False,
    **rest: Any,
) -> Any:
    """Return the declaration of the setting `name`. A class such as `BrokerConfig` stores it in a field."""
    number = ConfigType.INT if maximum <= INT32_MAX else ConfigType.LONG
    kind = ConfigType.LIST if is_list else TYPES.get(type(default), number)
    return ConfigKey(name, kind, default, doc, minimum, maximum, **rest)


dynamic_setting = partial(setting, dynamic=True)  # a setting that clients may alter while the broker runs
# TYPES maps the Python type of a setting's default value to the setting's type in Kafka's protocol.
TYPES = {bool: ConfigType.BOOLEAN, float: ConfigType.DOUBLE, str: ConfigType.STRING}


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Settings:
    """The base class of `BrokerConfig` and of its parts, such as `LimitsConfig`.

    A subclass has two kinds of fields. Some fields declare one setting each. Other fields contain a *part*: an
    object with the settings of one subject, for example all limits.

    The constructor takes the values of fields as keyword arguments. A field without an argument gets its default.
    The values do not change later.

    - `declared` is a dict: field name -> declaration of a setting.
    - `parts` is a dict: field name -> class of a part.

    This class is not a dataclass, because a dataclass would slow down the import. Python would have to generate and
    compile the methods of each dataclass. For the settings of a broker, this would take 15 ms.
    """

    declared: ClassVar[dict[str, ConfigKey]]
    parts: ClassVar[dict[str, type[Settings]]]

    def __init_subclass__(cls) -> None:
        fields = vars(cls).items()
        cls.declared = {name: key._replace(field=name) for name, key in fields if isinstance(key, ConfigKey)}
        cls.parts = {name: type(part) for name, part in fields if isinstance(part, Settings)}

    def __init__(self, **values: Any) -> None:
        if unknown := [name for name in values if not hasattr(self, name)]:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(unknown)}")
        vars(self).update({name: key.default for name, key in self.declared.items()} | values)

    @classmethod
    def all_declared(cls) -> Iterator[ConfigKey]:
        """Return the declarations of all settings, including those of the classes in `parts`."""
        yield from cls.declared.values()
        for part in cls.parts.values():
            yield from part.all_declared()

    @classmethod
    def of(cls, values: Mapping[str, Any], **rest: Any) -> Self:
        """Create an instance of this class from the values of settings.

        `values` maps names of settings to values, and `rest` maps names of fields to values. For example,
        `BrokerConfig.of({"num.partitions": 3}, log=LogConfig())` sets the fields `num_partitions` and `log`.
        """
        own = {field: values[key.name] for field, key in cls.declared.items() if key.name in values}
        parts = {field: part.of(values) for field, part in cls.parts.items()}
        return cls(**own, **parts, **rest)


MAX_LENGTH_DIFFERENCE = 6  # between a misspelled name and a name that `nearest` suggests


def check_length(text: str, name: str) -> None:
    """Raise ConfigError if `text`, the value of the setting `name`, is too long for a DescribeConfigs response."""
    if (size := len(text.encode())) > LONGEST_STRING:
        raise ConfigError(f"the value has {size} bytes, at most {LONGEST_STRING} are allowed", name, text)


def split_list(text: str) -> list[str]:
    """Return the items of a comma-separated list, without repetitions. For an empty text, return an empty list."""
    return list(dict.fromkeys(item.strip() for item in text.split(","))) if text.strip() else []


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return a hint for an error message about an unknown name, such as `, did you mean 'retention.ms'?`.

    The hint contains the name in `known` that is most similar to the unknown name `name`. If no similarity reaches
    `cutoff` (0 to 1), the function returns an empty text.

    The function compares `name` only with names that have the same first letter and a similar length. This saves
    time: a comparison takes about 20 microseconds, and a request can contain thousands of unknown names.
    """
    import difflib  # This import takes 1.5 ms. Only error messages need it.

    alike = [other for other in known if other[:1] == name[:1] and abs(len(other) - len(name)) <= MAX_LENGTH_DIFFERENCE]
    matches = difflib.get_close_matches(name, alike, 1, cutoff)
    return f", did you mean {matches[0]!r}?" if matches else ""
