"""Names of settings in files and in the environment, and warnings about misspelled names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from hmb.broker.config.broker import BROKER_CONFIGS
from hmb.broker.config.keys import ConfigError, nearest
from hmb.defaults import SERVERS_VARIABLE

# BROKER_CONFIGS cannot contain settings such as `listener.name.internal.plain.sasl.jaas.config`, because users choose
# the listener's name (here `internal`). The module security/settings.py checks all settings with this prefix or suffix.
LISTENER_PREFIX, JAAS_SUFFIX = "listener.name.", ".sasl.jaas.config"
CONTROLLERS = re.compile(
    r"controller\.quorum\..*|metadata\..*|early\.start\.listeners|broker\.heartbeat\.interval\.ms"
    r"|broker\.session\.timeout\.ms|initial\.broker\.registration\.timeout\.ms|server\.max\.startup\.time\.ms"
)
"""The names of settings that only the controllers of Kafka (KRaft) need. HMB has no controllers of their own."""
CLIENT_VARIABLES = {SERVERS_VARIABLE}  # variables that the command-line clients read
VARIABLES = {"HMB_" + name.upper().replace(".", "_"): name for name in BROKER_CONFIGS}


def _is_known(name: str) -> bool:
    return (
        name in BROKER_CONFIGS
        or name.startswith(LISTENER_PREFIX)
        or name.endswith(JAAS_SUFFIX)
        or CONTROLLERS.fullmatch(name) is not None
    )


def unknown_names(properties: Iterable[str]) -> list[str]:
    """Return one warning for each unknown name in `properties`, and one warning for all skipped names.

    A warning can suggest a similar name. HMB skips the settings that only Kafka's controllers use.
    """
    skipped = [name for name in properties if CONTROLLERS.fullmatch(name)]
    warnings = [f"skipped settings that only Kafka's controllers need: {', '.join(skipped)}"] if skipped else []
    return warnings + [
        f"unknown setting {name!r} is ignored{nearest(name, BROKER_CONFIGS)}"
        for name in properties
        if not _is_known(name)
    ]


def check_known(properties: Iterable[str]) -> None:
    """Raise ConfigError if `properties` contains a name that is not the name of a setting."""
    for name in properties:
        if not _is_known(name):
            raise ConfigError(f"unknown setting {name!r}{nearest(name, BROKER_CONFIGS)}")


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """Return a warning for each environment variable that looks like a misspelled setting.

    For example, HMB_LOG_SEGMENT_BYTE looks like a misspelled HMB_LOG_SEGMENT_BYTES.
    """
    return [
        f"unknown setting {variable!r} is ignored{found}"
        for variable in environment
        if variable.startswith("HMB_") and variable not in VARIABLES and variable not in CLIENT_VARIABLES
        if (found := nearest(variable, VARIABLES, cutoff=0.8))
    ]


def environment_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that environment variables set. For example, HMB_LOG_SEGMENT_BYTES sets log.segment.bytes."""
    return {VARIABLES[variable]: value for variable, value in environment.items() if variable in VARIABLES}
