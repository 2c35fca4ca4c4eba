"""The file `configs.json`: the settings that clients have altered while the broker was running.

The file `configs.json` is in the data directory. It contains settings of brokers, of groups and of client metrics. The
settings for one broker are listed under the broker's id. The settings for all brokers are listed under the empty name
"":
    {"brokers": {"": {"log.retention.ms": "60000"}, "0": {"message.max.bytes": "5000000"}},
     "groups": {"billing": {"consumer.session.timeout.ms": "50000"}},
     "client_metrics": {"producers": {"metrics": "org.apache.kafka.producer"}}}

The broker replaces the whole file `configs.json` in one step. After a crash, the directory contains either the old file
or the complete new file. The settings of topics are in another file, `topics.json` (topics/store.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from hmb.storage.state.identity import DataDirectoryError
from hmb.storage.state.manifest import DamagedStateFile, Manifest

# The outer key is a broker's id, "" (all brokers), a group's name, or the name of a client-metrics subscription. The
# inner dictionary maps the names of settings to their values.
Configs = dict[str, dict[str, str]]


class ConfigStore:
    """The file `configs.json` and its content. Not thread-safe: the caller, `DynamicConfig`, holds a lock."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        """Read `configs.json` in `directory`. Raises DataDirectoryError."""
        self.path = directory / "configs.json"
        self._manifest = manifest
        held = self._read()
        self.brokers: Mapping[str, Mapping[str, str]] = held.get("brokers", {})
        self.groups: Mapping[str, Mapping[str, str]] = held.get("groups", {})
        self.client_metrics: Mapping[str, Mapping[str, str]] = held.get("client_metrics", {})

    def _read(self) -> dict[str, Configs]:
        try:
            self._manifest.check(self.path)
            if not self.path.exists():
                return {}
            kinds = json.loads(self.path.read_text(encoding="utf-8"))
            return {
                kind: {for_: {str(n): str(v) for n, v in configs.items()} for for_, configs in entries.items()}
                for kind, entries in kinds.items()
            }
        except (DamagedStateFile, OSError, ValueError, AttributeError) as error:
            raise DataDirectoryError(
                f"cannot use the altered settings in {self.path}: {error}; restore this file from a copy; to start "
                f"without these settings, move this file and {self._manifest.path} to another directory"
            ) from error

    def write(
        self,
        *,
        brokers: Mapping[str, Mapping[str, str]] | None = None,
        groups: Mapping[str, Mapping[str, str]] | None = None,
        client_metrics: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Replace settings in the file `configs.json`. Raises OSError.

        Each argument contains all settings of one kind: of brokers, of groups, or of client metrics. If an argument is
        None, the file keeps its settings of this kind.

        The function leaves out every name that has no settings. For example, `groups={"a": {}}` adds nothing to the
        file.
        """
        brokers = _filled(self.brokers if brokers is None else brokers)
        groups = _filled(self.groups if groups is None else groups)
        client_metrics = _filled(self.client_metrics if client_metrics is None else client_metrics)
        kinds = {"brokers": brokers, "groups": groups} | ({"client_metrics": client_metrics} if client_metrics else {})
        self._manifest.replace_file(self.path, json.dumps(kinds, indent=2, sort_keys=True) + "\n")
        self.brokers, self.groups, self.client_metrics = brokers, groups, client_metrics


def _filled(entries: Mapping[str, Mapping[str, str]]) -> Configs:
    return {for_: dict(configs) for for_, configs in entries.items() if configs}
