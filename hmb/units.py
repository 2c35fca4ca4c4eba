"""Settings with units: `retention.ms=1h`, `segment.bytes=1MiB`.

Kafka's settings are plain numbers. The unit is in the setting's name: `retention.ms` is in milliseconds,
`log.retention.hours` in hours, `segment.bytes` in bytes. Large numbers are hard to read and to write, so HMB also
accepts numbers with units. In each line, the two settings have the same value:
    retention.ms=604800000      retention.ms=7d
    segment.bytes=1073741824    segment.bytes=1GiB

`plain_value(name, value)` converts a value with a unit into the plain number that Kafka uses. A value without a unit
stays unchanged. The values of all settings that are neither times nor sizes, such as `cleanup.policy`, also stay
unchanged.

When a user gives a setting to a command or to the embedded broker, HMB calls `plain_value`. For example, the
setting `retention.ms=1h` becomes `retention.ms=3600000`. Requests contain only the plain number. A user can
therefore also write units in a command for an Apache Kafka broker, although Kafka does not know these units.

A duration consists of one or more numbers with units: `500ms`, `90s`, `1h30m`, `7d`, `2w`.

Kafka's times are numbers of milliseconds since 1970 (EPOCH). `now_ms` returns the current time in this form.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

from hmb.protocol.enums import INT64_MAX

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS_PER_S = 1000
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
UNITS = {"ms": 1, "s": MS_PER_S, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
MIB = 2**20  # bytes
DURATION = r"-?(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+"
TIME_UNITS = {  # last part of a setting's name -> milliseconds in this unit
    "ms": UNITS["ms"],
    "seconds": UNITS["s"],
    "minutes": UNITS["m"],
    "hours": UNITS["h"],
}
SIZE_NAMES = re.compile(r"(^|\.)bytes(\.per\.second)?$|^batch\.size$|^buffer\.memory$|\.(request|buffer)\.size$")
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s?(Ki|Mi|Gi|Ti|k|K|M|G|T)?B", re.ASCII)
SIZE_UNITS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
SIZE_UNITS |= {"Ki": 2**10, "Mi": MIB, "Gi": 2**30, "Ti": 2**40}

TIME_UNITS_SHOWN = ", ".join(UNITS)
SIZE_UNITS_SHOWN = ", ".join(f"{unit}B" for unit in SIZE_UNITS)


def now_ms() -> int:
    """Return the system's time in ms since 1970."""
    return time.time_ns() // 1_000_000


def plain_value(name: str, value: str) -> str:
    """Return the value of a setting as a plain number: for `retention.ms`, `1h` becomes `3600000`.

    If the setting is neither a time nor a size, or the value has no known unit, the value stays unchanged. Raises
    ValueError if a duration is above INT64_MAX ms, or not a whole number in the setting's unit: `30m` is not a
    whole number of hours.
    """
    if is_time(name) and is_duration(value):
        return in_unit_of(name, parse_duration(value))
    if SIZE_NAMES.search(name) and (size := SIZE.fullmatch(value)) is not None:
        return str(int(float(size[1]) * SIZE_UNITS[size[2] or ""]))
    return value


def check_unit(name: str, value: str) -> None:
    """Raise ValueError if `value` has an unknown unit, such as `5x` for the setting `retention.ms`.

    The function checks only times and sizes. The caller must first call `plain_value`, which replaces known
    units: `1h` becomes `3600000`. A unit that remains is therefore unknown. The error message lists the
    known units.
    """
    units = TIME_UNITS_SHOWN if is_time(name) else SIZE_UNITS_SHOWN if SIZE_NAMES.search(name) else ""
    if units and re.fullmatch(r"-?[\d.]+\s?[A-Za-z]+", value, re.ASCII):
        raise ValueError(f"the value has an unknown unit; known units: {units}")


def is_time(name: str) -> bool:
    """Return whether the name of a setting ends with a unit of time, as `retention.ms` does."""
    return name.rpartition(".")[2] in TIME_UNITS


def in_unit_of(name: str, milliseconds: int) -> str:
    """Return a duration in the unit of the setting `name`, as text.

    For example, 7,200,000 ms become `2` for the setting `log.retention.hours`. Raises ValueError if the result is
    not a whole number.
    """
    unit = name.rpartition(".")[2]
    if milliseconds % TIME_UNITS[unit]:
        raise ValueError(f"the value must be a whole number of {unit}")
    return str(milliseconds // TIME_UNITS[unit])


def is_duration(text: str) -> bool:
    """Return whether a text is a duration such as `1h30m` or `-90s`."""
    return re.fullmatch(DURATION, text, re.ASCII) is not None


def parse_duration(text: str) -> int:
    """Return the number of milliseconds of a duration such as `1h30m`. The text must match DURATION.

    Raises ValueError if the number is greater than INT64_MAX.
    """
    parts = re.findall(r"([\d.]+)(ms|[smhdw])", text)
    milliseconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    if milliseconds > INT64_MAX:
        raise ValueError(f"{text} is too long for a duration")
    return int(-milliseconds if text.startswith("-") else milliseconds)
