"""A data directory for tests that stop or kill the broker, damage files, and start the broker again."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hmb.protocol.topics import TopicPartition
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from hmb.storage.log_manager import LogManager, NewLog

NAME = TopicPartition("events", 0)


@dataclass
class DataDirectory:
    """The data directory at `path`. By default it has one partition: partition 0 of the topic `events`.

    The directory is open while `logs` is not None.
    """

    path: Path
    config: LogConfig = field(default_factory=LogConfig)
    logs: LogManager | None = None
    partitions: Sequence[TopicPartition] = (NAME,)

    def start(self, config: LogConfig | None = None) -> Log:
        """Open the logs as a broker does. The first start creates the partitions. Return the first partition's log."""
        self.config = config or self.config
        self.logs = LogManager(self.path)
        self.logs.load({}, self.config)
        found = dict(self.logs.items())
        if not found:
            ids = {name.topic: uuid.uuid4() for name in self.partitions}
            self.logs.create_all([NewLog(name, self.config, ids[name.topic]) for name in self.partitions])
            found = dict(self.logs.items())
        return found[self.partitions[0]]

    def stop(self) -> None:
        assert self.logs is not None
        self.logs.close()
        self.logs = None

    def kill(self) -> None:
        """End the broker as `kill -9` does.

        The kernel still has all written bytes, so the files stay as they are now.
        """
        assert self.logs is not None
        copy = self.path.with_name(f"{self.path.name}-killed")
        shutil.copytree(self.path, copy)  # The copies keep the modification times.
        self.logs.close()
        self.logs = None
        shutil.rmtree(self.path)
        copy.rename(self.path)

    def end(self, *, clean: bool) -> None:
        if clean:
            self.stop()
        else:
            self.kill()

    @property
    def partition(self) -> Path:
        return self.path / str(self.partitions[0])

    def segments(self) -> list[Path]:
        """Return the paths of the first partition's segments, sorted by base offset."""
        return sorted(self.partition.glob("*.log"))
