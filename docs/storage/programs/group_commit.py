import os
import threading


class SharedSync:
    def __init__(self) -> None:
        self.file = os.open("log", os.O_CREAT | os.O_WRONLY)
        self.lock = threading.Lock()
        self.written = self.synced = self.syncs = 0  # batches written, batches synced, syncs

    def append(self, batch: bytes) -> int:
        os.write(self.file, batch)
        self.written += 1
        return self.written

    def sync(self, end: int) -> None:
        with self.lock:  # Only one sync runs. The other producers wait here.
            if self.synced >= end:
                return  # The sync of another producer has covered this batch.
            covered = self.written  # every batch that was written before the sync begins
            os.fsync(self.file)
            self.synced, self.syncs = covered, self.syncs + 1


log = SharedSync()
ends = [log.append(b"batch") for _ in range(5)]
for end in ends:
    log.sync(end)
print(f"producers that waited: {len(ends)}, syncs: {log.syncs}")
