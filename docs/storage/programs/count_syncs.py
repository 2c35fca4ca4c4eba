import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from hmb.records import Record, RecordBatch, encode_batch
from hmb.storage.config import LogConfig
from hmb.storage.log import Log

BATCHES = 240
counted = []
fdatasync = os.fdatasync
os.fdatasync = lambda file: (counted.append(file), fdatasync(file))


def produce(log: Log, batches: int, *, waits: bool) -> None:
    for number in range(batches):
        log.append(RecordBatch.parse(encode_batch([Record(timestamp=1_000, value=b"batch %d" % number)])))
        if waits:
            log.flush()  # The broker does the same for acks=all.


def run(producers: int, *, waits: bool) -> int:
    counted.clear()
    with TemporaryDirectory() as directory:
        log = Log(Path(directory), LogConfig(), clock=lambda: 1_000)
        arguments = {"args": (log, BATCHES // producers), "kwargs": {"waits": waits}}
        threads = [threading.Thread(target=produce, **arguments) for _ in range(producers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        syncs = len(counted)
        log.close()
    return syncs


print(f"{BATCHES} batches, acks=1, producers: 1, syncs: {run(1, waits=False)}")
for producers in (1, 4, 12):
    print(f"{BATCHES} batches, acks=all, producers: {producers}, syncs: {run(producers, waits=True)}")
