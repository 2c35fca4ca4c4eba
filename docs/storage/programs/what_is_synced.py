import os
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory

from hmb.protocol.topics import TopicPartition
from hmb.records import Record, RecordBatch, encode_batch
from hmb.storage.config import LogConfig
from hmb.storage.log_manager import LogManager

synced: list[str] = []
fsync, fdatasync = os.fsync, os.fdatasync


def noting(sync):
    def call(file: int) -> None:
        path = Path(f"/proc/self/fd/{file}").readlink()
        synced.append(f"{path.name}/" if path.is_dir() else path.name)
        sync(file)

    return call


def report(event: str) -> None:
    print(f"{event}:")
    print("   ", ", ".join(dict.fromkeys(synced)).replace(root.name, "data") or "no sync")
    synced.clear()


def batch(count: int) -> RecordBatch:
    return RecordBatch.parse(encode_batch([Record(timestamp=1_000, value=b"rain") for _ in range(count)]))


os.fsync, os.fdatasync = noting(fsync), noting(fdatasync)
with TemporaryDirectory() as name:
    root = Path(name)
    manager = LogManager(root, clock=lambda: 1_000)
    manager.load({}, LogConfig())
    synced.clear()
    log = manager.create(TopicPartition("weather", 0), LogConfig(segment_bytes=400), uuid.uuid4())
    report("create a topic")
    log.append(batch(5))
    report("append with acks=1")
    log.flush()
    report("the first acks=all")
    log.append(batch(5))
    log.flush()
    report("the next acks=all")
    log.append(batch(20))
    report("an append that rolls the segment")
    manager.write_checkpoints()
    report("write the checkpoints")
    manager.close()
    report("stop the broker")
