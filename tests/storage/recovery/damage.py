"""Damages a log's active segment, byte by byte, and checks which batches recovery keeps.

The formats are record batches, messages v0 and messages v1, each with all its codecs. For each format, the check writes
a log file of several batches. Then it damages copies of this file in two ways:

- A cut copy contains only the first bytes of the file. The check makes one cut copy for each possible length. Recovery
  must keep exactly the complete batches.
- A changed copy differs from the file in one byte. Recovery must keep exactly the batches before the batch that
  contains this byte.

The check recovers each damaged log twice. Both recoveries must have the same result. The batches that recovery keeps
must be unchanged.

If the changed byte is in the leader epoch of a record batch (bytes 12 to 15 of the batch), recovery must keep all
batches of the file. No CRC covers the leader epoch, and the records are unchanged.

The command `python -m tests.storage.recovery.damage --flips 10000` checks all cut copies and 10,000 changed copies of
the log file of each format. It prints one line for each format. The tests in `test_recovery_damage.py` check fewer
copies.
"""

from __future__ import annotations

import argparse
import logging
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from hmb.records import Codec, Record, RecordBatch, TimestampType, encode_batch, encode_message_set, iter_batches
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from tests.storage.conftest import produced

CONFIG = LogConfig(index_interval_bytes=60)
NAME = f"{0:020d}.log"
RECORDS_IN_BATCH = (1, 3, 2, 1, 4)
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # A disk would be too slow for thousands of syncs.
LEADER_EPOCH = range(12, 16)
FORMATS = {
    f"v{magic} {codec.name.lower()}": (magic, codec)
    for magic in (0, 1, 2)
    for codec in Codec
    if magic == 2 or codec is not Codec.ZSTD
}


class NotKept(AssertionError):
    """Recovery kept too many or too few batches."""


@dataclass(frozen=True, slots=True)
class Original:
    """An undamaged log file, the end position of each batch, and the offset after each batch."""

    data: bytes
    ends: list[int]  # the positions at which batches end; the first is 0
    next_offsets: list[int]
    magic: int

    def batches_before(self, position: int) -> int:
        """Return how many batches end at or before `position`."""
        return sum(1 for end in self.ends if end <= position) - 1

    def is_unprotected(self, position: int) -> bool:
        start = self.ends[self.batches_before(position)]
        return self.magic == 2 and position - start in LEADER_EPOCH


def write_original(directory: Path, name: str) -> Original:
    magic, codec = FORMATS[name]
    log = Log(directory, CONFIG, clean=True)
    for number, count in enumerate(RECORDS_IN_BATCH):
        records = [
            Record(i, 1_000 + number, b"key", b"value %d" % i, (), TimestampType.CREATE_TIME) for i in range(count)
        ]
        batch = encode_batch(records, codec=codec) if magic == 2 else encode_message_set(records, magic, codec)
        log.append(produced(batch))
    data = (directory / NAME).read_bytes()
    batches = list(iter_batches(data))
    ends = [0]
    for batch in batches:
        ends.append(ends[-1] + batch.size)
    return Original(data, ends, [0, *(batch.last_offset + 1 for batch in batches)], magic)


def cuts(original: Original) -> Iterator[tuple[bytes, int]]:
    """For each possible length, yield a cut copy and the number of batches that recovery must keep."""
    for length in range(len(original.data) + 1):
        yield original.data[:length], original.batches_before(length)


def flips(original: Original, count: int, seed: int = 0) -> Iterator[tuple[bytes, int]]:
    """Yield `count` pairs: a copy with one changed byte, and the number of batches that recovery must keep.

    The first copies have the changed byte at each position of the file once, in random order. In further copies, the
    position is random.
    """
    choose = random.Random(seed)
    places = list(range(len(original.data)))
    choose.shuffle(places)
    for number in range(count):
        place = places[number] if number < len(places) else choose.choice(places)
        data = bytearray(original.data)
        data[place] ^= choose.randrange(1, 256)
        yield bytes(data), len(RECORDS_IN_BATCH) if original.is_unprotected(place) else original.batches_before(place)


def check(directory: Path, original: Original, damaged: bytes, kept: int) -> None:
    """Recover a damaged file twice. Raises NotKept if the log does not contain exactly its first `kept` batches."""
    path = directory / NAME
    path.write_bytes(damaged)
    end = original.ends[kept]
    for attempt in (1, 2):
        log = Log(directory, CONFIG)
        if log.log_end_offset != original.next_offsets[kept] or path.read_bytes() != damaged[:end]:
            raise NotKept(f"start {attempt}: log end offset {log.log_end_offset}, not {original.next_offsets[kept]}")
        if _without_epochs(path.read_bytes()) != _without_epochs(original.data[:end]):
            raise NotKept(f"start {attempt}: records have changed")


def _without_epochs(data: bytes) -> bytes:
    cleared = bytearray(data)
    position = 0
    for batch in iter_batches(data):
        if isinstance(batch, RecordBatch):
            cleared[position + LEADER_EPOCH.start : position + LEADER_EPOCH.stop] = bytes(4)
        position += batch.size
    return bytes(cleared)


def side_files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.cut"))


def run(name: str, flip_count: int, cut_step: int = 1) -> tuple[int, int, int]:
    """Recover many damaged copies of a log in the format `name`, and check which batches recovery keeps.

    The length of each cut copy is a multiple of `cut_step`, and `flip_count` is the number of changed copies. Return
    three numbers: how many cut copies were checked, how many changed copies were checked, and how many files recovery
    created to save damaged bytes.
    """
    with tempfile.TemporaryDirectory(dir=MEMORY) as temporary:
        directory, done, kept_files = Path(temporary), [0, 0], 0
        original = write_original(directory, name)
        for kind, cases in enumerate((islice(cuts(original), 0, None, cut_step), flips(original, flip_count))):
            for damaged, kept in cases:
                check(directory, original, damaged, kept)
                done[kind] += 1
                for path in side_files(directory):
                    path.unlink()
                    kept_files += 1
        return done[0], done[1], kept_files


def main() -> None:
    parser = argparse.ArgumentParser(description="Cut and change a log in every place, and recover it.")
    parser.add_argument("--flips", type=int, default=10_000, help="changed bytes per format (default: 10000)")
    count = parser.parse_args().flips
    logging.disable(logging.CRITICAL)
    for name in FORMATS:
        start = time.monotonic()
        cut, flipped, kept = run(name, count)
        seconds = time.monotonic() - start
        print(f"{name:<9} {cut:>5} cuts  {flipped:>6} flips  {kept:>6} kept beside the log  {seconds:6.1f} s: as whole")


if __name__ == "__main__":
    main()
