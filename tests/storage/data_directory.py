"""A data directory that tests stop, kill, damage and start again."""

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
    """The directory `path`, with partition 0 of the topic `events`, or others; open while `logs` is not None."""

    path: Path
    config: LogConfig = field(default_factory=LogConfig)
    logs: LogManager | None = None
    partitions: Sequence[TopicPartition] = (NAME,)

    def start(self, config: LogConfig | None = None) -> Log:
        """Start a broker's logs; the first start creates the partitions. Returns the first one's log."""
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
        """Go on with the files as they are now, as after kill -9: the kernel still has all that was written."""
        assert self.logs is not None
        copy = self.path.with_name(f"{self.path.name}-killed")
        shutil.copytree(self.path, copy)  # with the times of the last writes
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
        """The segments of the first partition, by base offset."""
        return sorted(self.partition.glob("*.log"))
