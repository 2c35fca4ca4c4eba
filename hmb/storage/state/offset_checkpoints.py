"""The two checkpoints of a data directory: the recovery point and the log start offset of each log.

As in Kafka, the two checkpoints are the files `recovery-point-offset-checkpoint` and
`log-start-offset-checkpoint`. For example, the line `orders 0 16100` in the first file means: in partition 0 of
the topic `orders`, all records at offsets below 16,100 are on disk.

After a crash, the broker may find a damaged batch. If its offsets are below the recovery point, the batch was on
disk, and was damaged later. Otherwise, it may never have been written completely.

The broker can start even if both checkpoint files are missing or damaged:
- Without the recovery points, the broker does not know which records are certainly on disk. After a crash, it
  may have to check more segments.
- Without the log start offsets, records that a client has deleted can become readable again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from hmb.protocol.topics import TopicPartition
from hmb.storage.state.checkpoints import offsets_content, read_offsets
from hmb.storage.state.identity import DataDirectoryError
from hmb.storage.state.manifest import DamagedStateFile, Manifest

LOGGER = logging.getLogger(__name__)
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
CONSEQUENCES = {
    RECOVERY_POINTS: "all logs are checked after an unclean stop",
    START_OFFSETS: "records that were deleted may be there again",
}


class OffsetCheckpoints:
    """Reads and writes the two checkpoints of one data directory. Not thread-safe: callers hold a lock."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        """Use the files in `directory`. The manifest contains their checksums."""
        self._directory = directory
        self._manifest = manifest

    def read(self, name: str) -> dict[TopicPartition, int]:
        """Return the offsets in the checkpoint file `name`, which is RECOVERY_POINTS or START_OFFSETS.

        If the file is missing or damaged, return an empty dict. Raises DataDirectoryError if the operating system
        cannot read the file.
        """
        path = self._directory / name
        try:
            self._manifest.check(path)
            return read_offsets(path)
        except DamagedStateFile as error:
            LOGGER.error("%s; the broker starts without this checkpoint: %s", error, CONSEQUENCES[name])
            return {}
        except OSError as error:
            raise DataDirectoryError(f"cannot read {path}: {error.strerror}") from error

    def write(self, recovery_points: Mapping[TopicPartition, int], start_offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the two checkpoint files, each of them in one step. Raises OSError."""
        offsets = {RECOVERY_POINTS: dict(recovery_points), START_OFFSETS: dict(start_offsets)}
        self._manifest.replace_files({self._directory / name: offsets_content(each) for name, each in offsets.items()})
