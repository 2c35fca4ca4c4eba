"""Helpers that write transactions to a log, and that read the log like a consumer of committed records."""

from __future__ import annotations

from hmb.records import ControlType, EndTransactionMarker, read_records
from hmb.storage.log import Log
from tests.storage.conftest import batch

COMMIT = EndTransactionMarker(ControlType.COMMIT, 0)
ABORT = EndTransactionMarker(ControlType.ABORT, 0)


class Writer:
    """A transactional producer that numbers its batches."""

    def __init__(self, log: Log, producer_id: int) -> None:
        self.log, self.producer_id, self.sequence = log, producer_id, 0

    def write(self, count: int = 1, **options: object) -> int:
        """Append a batch of `count` records. Return its first offset."""
        producer = {"producer_id": self.producer_id, "producer_epoch": 0, "base_sequence": self.sequence}
        self.sequence += count
        return self.log.append(batch(count, transactional=True, **producer, **options)).base_offset

    def end(self, marker: EndTransactionMarker) -> int:
        return self.log.append_marker(marker, self.producer_id, 0).base_offset


def committed_offsets(log: Log, max_bytes: int = 1_000_000) -> list[int]:
    """Return the offsets that a Kafka consumer with isolation.level=read_committed gets."""
    from hmb.records import iter_batches

    found: list[int] = []
    offset = log.log_start_offset
    while region := (slice := log.read(offset, max_bytes, committed=True)).records:
        waiting = sorted(slice.aborted, key=lambda aborted: aborted.first_offset)
        left_out: set[int] = set()
        for each in iter_batches(region.read()):
            while waiting and waiting[0].first_offset <= each.last_offset:
                left_out.add(waiting.pop(0).producer_id)
            if each.is_control:
                left_out.discard(each.producer_id)
            elif not (each.is_transactional and each.producer_id in left_out):
                found += [record.offset for record in read_records(each.view) if record.offset >= offset]
            next_offset = each.last_offset + 1
        offset = next_offset
    return found
