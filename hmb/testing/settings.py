"""Converts the settings that a test passes to an embedded broker, and defines defaults for fast tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from hmb.broker.config.keys import ConfigError
from hmb.units import check_unit, in_unit_of, is_time, plain_value

Setting = str | int | float | bool | timedelta
EMBEDDED_DEFAULTS: Mapping[str, Setting] = {
    "group.initial.rebalance.delay.ms": 0,
    "log.flush.acks.all": False,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}


def setting_text(name: str, value: Setting) -> str:
    """Convert the value of a setting into the text that `server.properties` would contain.

    The value can be a text with a unit, such as `1h` or `1MiB`, or a `timedelta`. The result is in the unit of the
    setting. For example, `1h` becomes `3600000` for a setting whose name ends with `.ms`.

    Raises ConfigError in these cases:

    - The setting is a time or a size, and the unit in the text is unknown.
    - A duration is too long, or is not a whole number in the unit of the setting.
    - The value is a `timedelta`, but the setting is not a time.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        if not isinstance(value, timedelta):
            number = plain_value(name, str(value))
            check_unit(name, number)
            return number
        if not is_time(name):
            raise ValueError(
                "the value must not be a timedelta, because the setting is not a time; "
                "write the value as in server.properties"
            )
        milliseconds, rest = divmod(value, timedelta(milliseconds=1))
        if rest:
            raise ValueError("the value must be a whole number of milliseconds")
        return in_unit_of(name, milliseconds)
    except ValueError as error:
        raise ConfigError(str(error), name, str(value)) from None
