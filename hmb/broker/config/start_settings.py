"""Settings that the broker reads only when it starts: the data directory, and the sizes of the quotas' time windows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hmb.broker.config.broker import ALIASES, BrokerConfig
from hmb.broker.config.keys import ConfigError
from hmb.broker.security.quotas.window import WindowSize


def data_dir_of(data_dir: str | Path | None, properties: Mapping[str, str], config: BrokerConfig) -> Path | None:
    """Return `data_dir`, or the directory in the setting log.dirs, or None if neither is set. Raises ConfigError."""
    if data_dir is None and any(ALIASES.get(name, name) == "log.dirs" for name in properties):
        data_dir = _only_directory(config.log_dirs)
    if data_dir == "":  # Path("") would be the current directory.
        raise ConfigError("data_dir is empty; name a directory")
    return Path(data_dir) if data_dir is not None else None


def _only_directory(log_dirs: str) -> str:
    if not log_dirs or "," in log_dirs:
        raise ConfigError("name one directory: a broker stores all its data in one directory", "log.dirs", log_dirs)
    return log_dirs


def window_sizes(config: BrokerConfig) -> tuple[WindowSize, WindowSize]:
    """Return the sizes of the two time windows of the quotas.

    A quota limits how much a client uses within a time window, for example within 11 seconds. The quota
    `controller_mutation_rate` uses the second window. All other quotas use the first window.
    """
    return (
        WindowSize(config.limits.quota_samples, config.limits.quota_sample_seconds * 1000),
        WindowSize(config.limits.mutation_samples, config.limits.mutation_sample_seconds * 1000),
    )
