"""Damages each kind of file of a data directory, while a broker is stopped or while it runs.

Each case damages one file: it deletes, empties, halves or doubles the file, replaces the file by a directory, or flips
one bit. The damage happens after a normal stop, after a kill, or while a broker runs. Then clients read all data. A new
broker starts, and clients read all data again.

The following three outcomes are allowed:

- *harmless*: clients see the same records, offsets, committed offsets of groups, transactions and settings;
- *reported*: the broker logs the path of the damaged file. When the broker starts once more, it does not report this
  file again. Clients get all records of intact batches, no wrong record, and no aborted record. No end offset is lower
  than before the damage;
- *refused*: the broker does not start, and its error names the path of the file. This outcome is allowed if the broker
  cannot rebuild the file's data, or if the case replaced the file by a directory.

If the broker starts after the damage, clients can read each partition from the first offset to the last.

Clients can receive one kind of damage: a batch with a wrong offset. No CRC covers the offset of a batch, and the kernel
sends fetched batches to the client unchecked. In each response, a running broker checks only the offset of the first
batch, so the offset of a later batch can be wrong. When the broker starts again, it usually corrects the wrong offset.

Sometimes a broker does not notice a wrong offset when it starts. The broker looks for changes by another process only
if a log file's size or modification time differs from the value that the broker saved when it stopped. For example, a
bit is flipped at 10:00. The broker appends to the same file at 10:01 and stops normally, so it saves the time 10:01. At
the next start, the file still has this time, so the broker does not notice the flipped bit. Kafka's broker never
notices a wrong offset.

`python -m tests.reliability.damage --cases 5000 --seed 7` runs many cases. `--case 33` runs one case and prints the
broker's log. test_damage.py runs some cases.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from hmb.protocol.errors import KafkaError
from hmb.records import Record, encode_batch
from hmb.storage.compaction.cleaner import Cleaner
from hmb.storage.state.identity import DataDirectoryError
from tests.broker.calls import outcome, produce
from tests.broker.conftest import Asker, open_asker
from tests.reliability.data_set import (
    GROUPS,
    SETTINGS,
    STOP,
    Batch,
    DataSet,
    Served,
    State,
    Stuck,
    build,
    commit,
    state_of,
)

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # A disk would be too slow for thousands of syncs.
MOMENTS = ("after a stop", "after a kill", "while it runs")
ONLY_THERE = ("meta.properties", "topics.json", "configs.json")  # No other file contains the data of these files.
OFFSET = range(8)  # A batch's base offset: no CRC covers these bytes.
NEW_RECORDS = 3


class Broken(AssertionError):
    """Raised if the broker has lost or changed data, or has not reported the damage."""


# -- the kinds of damage


def delete(path: Path, _: random.Random) -> None:
    path.unlink()


def empty(path: Path, _: random.Random) -> None:
    os.truncate(path, 0)


def halve(path: Path, _: random.Random) -> None:
    os.truncate(path, path.stat().st_size // 2)


def double(path: Path, _: random.Random) -> None:
    with path.open("ab") as file:
        file.write(path.read_bytes())


def replace_by_directory(path: Path, _: random.Random) -> None:
    path.unlink()
    path.mkdir()


def flip(path: Path, choose: random.Random) -> None:
    """Flip one random bit of the file. An empty file stays empty."""
    size = path.stat().st_size
    if size:
        position = choose.randrange(size)
        with path.open("r+b") as file:
            file.seek(position)
            byte = file.read(1)[0]
            file.seek(position)
            file.write(bytes([byte ^ 1 << choose.randrange(8)]))


KINDS: dict[str, Callable[[Path, random.Random], None]] = {
    "deleted": delete,
    "emptied": empty,
    "halved": halve,
    "doubled": double,
    "replaced by a directory": replace_by_directory,
    "bit flipped": flip,
}
WEIGHTS = (1, 1, 1, 1, 1, 4)  # Bit flips are chosen more often, because they have many possible positions.


@dataclass(frozen=True)
class Case:
    """One kind of damage to one file. `name` is the file's path in the data directory."""

    moment: str
    name: str
    kind: str
    seed: int

    def __str__(self) -> str:
        return f"{self.name} {self.kind} {self.moment} (seed {self.seed})"


def kind_of(name: str) -> str:
    """Return a string for the kind of a file. For example, all `.log` files of one partition have the same kind."""
    path = Path(name)
    return f"{path.parent}/{path.suffix}" if path.suffix and path.stem.isdecimal() else path.name


def cases(data: DataSet, seed: int) -> Iterator[Case]:
    """Yield random cases without end. Each kind of file occurs equally often."""
    choose = random.Random(seed)
    by_kind: dict[str, dict[str, list[str]]] = {}
    for moment, directory in zip(MOMENTS, (data.clean, data.killed, data.clean), strict=True):
        by_kind[moment] = {}
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                name = path.relative_to(directory).as_posix()
                by_kind[moment].setdefault(kind_of(name), []).append(name)
    while True:
        moment = choose.choice(MOMENTS)
        files = by_kind[moment][choose.choice(sorted(by_kind[moment]))]
        (kind,) = choose.choices(list(KINDS), WEIGHTS)
        yield Case(moment, choose.choice(files), kind, choose.randrange(2**32))


# -- running one case


class Log(logging.Handler):
    """A logging handler that collects the broker's messages."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())

    def names(self, path: Path) -> bool:
        """Return whether the broker has logged a message that contains `path`."""
        return any(str(path) in message for message in self.messages)


def run(case: Case, data: DataSet) -> str:
    """Run one case, and return its outcome: "harmless", "reported" or "refused". Raises Broken or Stuck."""
    with tempfile.TemporaryDirectory(prefix="hmb-damage-", dir=MEMORY) as temporary:
        directory = Path(temporary) / "data"
        shutil.copytree(data.killed if case.moment == "after a kill" else data.clean, directory)
        path, log = directory / case.name, Log()
        logging.getLogger("hmb").addHandler(log)
        try:
            return _Run(case, data, directory, path, log).outcome()
        finally:
            logging.getLogger("hmb").removeHandler(log)


class _Run:
    """The state of one running case."""

    def __init__(self, case: Case, data: DataSet, directory: Path, path: Path, log: Log) -> None:
        self._case, self._data, self._directory, self._path, self._log = case, data, directory, path, log
        self._new: dict[int, bytes] = {}  # new acknowledged records: offset -> value
        self._may_move = set(GROUPS[:1])  # groups whose committed offset may have changed

    def outcome(self) -> str:
        choose = random.Random(self._case.seed)
        if self._case.moment == "while it runs":
            self._in_use(choose)
        else:
            KINDS[self._case.kind](self._path, choose)
        try:
            found = self._start()
        except DataDirectoryError as error:
            return self._refused(error)
        result = self._compare(found)
        self._check_second_start(found)
        return result

    def _start(self) -> State:
        ask = open_asker(self._directory, SETTINGS, sync=True)
        try:
            return state_of(ask, self._data.timestamps)
        finally:
            ask.close()

    def _in_use(self, choose: random.Random) -> None:
        """Damage the file while a broker runs. Then read all data, write a few records, and stop the broker."""
        ask = open_asker(self._directory, SETTINGS, sync=True)
        try:
            state_of(ask, self._data.timestamps)
            if not self._path.is_file():  # The broker has removed the file at its start.
                return
            KINDS[self._case.kind](self._path, choose)
            found = state_of(ask, self._data.timestamps)
            if not self._is_offset_flipped():
                self._check(found, is_reported=True)
            self._write(ask)
        finally:
            ask.close()

    def _write(self, ask: Asker) -> None:
        for number in range(NEW_RECORDS):
            value = b"new %d" % number
            data = encode_batch([Record(0, time.time_ns() // 1_000_000, b"k", value)])
            answer = ask(produce(data, topic="plain", acks=-1), 9)
            if not outcome(answer):
                self._new[answer.responses[0].partition_responses[0].base_offset] = value
        commit(ask, GROUPS[0], 99)
        cleaner = Cleaner(ask.logs, max_memory=1 << 20, rate=float("inf"), stop=STOP)
        for task in (ask.logs.expire, ask.logs.flush_if_due, cleaner.run):
            try:
                task()
            except (KafkaError, OSError) as error:  # The class `Housekeeper` catches the same exceptions.
                logging.getLogger("hmb").error("%s", error)

    def _refused(self, error: DataDirectoryError) -> str:
        if self._path.name not in ONLY_THERE and self._case.kind != "replaced by a directory":
            raise Broken(f"refused: {error}")
        if str(self._path) not in str(error):
            raise Broken(f"refused without the file's path: {error}")
        return "refused"

    def _compare(self, found: State) -> str:
        if self._case.moment != "while it runs" and found == self._data.expected:
            return "harmless"
        is_reported = self._log.names(self._path)
        self._check(found, is_reported=is_reported)
        return "reported" if is_reported else "harmless"

    def _check(self, found: State, *, is_reported: bool) -> None:
        expected = self._data.expected
        if found.topics != expected.topics:
            raise Broken(f"topics: {found.topics}, not {expected.topics}")
        for name, before in expected.partitions.items():
            if not is_reported and self._is_offset_flipped() and self._case.name.startswith(f"{name}/"):
                continue
            try:
                self._check_partition(name, found.partitions[name], before, is_reported=is_reported)
            except Broken as error:
                raise Broken(f"{name}: {error}") from None
        is_group_log = self._case.name.startswith("__consumer_offsets") and is_reported
        for group, offset in expected.groups.items():
            if found.groups[group] != offset and group not in self._may_move and not is_group_log:
                raise Broken(f"{group} is at {found.groups[group]}, not {offset}")
        is_transaction_log = self._case.name.startswith("__transaction_state") and is_reported
        if found.transactions != expected.transactions and not is_transaction_log:
            raise Broken(f"transactions: {found.transactions}, not {expected.transactions}")

    def _check_partition(self, name: str, found: Served, before: Served, *, is_reported: bool) -> None:
        new = self._new if name == "plain-0" else {}
        if found.end < before.end + len(new):
            raise Broken(f"it ends at {found.end}, not {before.end + len(new)}")
        known = self._data.deleted[name] | before.records | {offset: (b"k", value) for offset, value in new.items()}
        for offset, record in found.records.items():
            if offset < before.end + len(new) and known.get(offset) != record:
                raise Broken(f"offset {offset} has {record}, not {known.get(offset)}")
        lost = self._touched(name) if is_reported else set()
        missing = (before.records.keys() | new.keys()) - found.records.keys() - lost
        if missing and not self._was_compacted(name):
            raise Broken(f"intact records are missing: {sorted(missing)}")
        hidden = before.records.keys() - before.committed
        if wrong := hidden & found.committed:
            raise Broken(f"aborted records are visible: {sorted(wrong)}")
        undecided = lost | self._with_lost_marker(name, lost)
        if (missing := before.committed - found.committed - undecided) and not self._was_compacted(name):
            raise Broken(f"committed records are not visible: {sorted(missing)}")
        if found.records == before.records and found.times != before.times and not self._was_compacted(name):
            raise Broken(f"searches by time found {found.times}, not {before.times}")

    def _was_compacted(self, name: str) -> bool:
        """Return whether compaction may have removed records of this partition."""
        return self._case.moment == "while it runs" and not name.startswith(("plain", "old", "gone"))

    def _touched(self, name: str) -> set[int]:
        """Return all offsets in damaged batches. A damaged batch has at least one changed or missing byte."""
        if not self._case.name.startswith(f"{name}/"):
            return set()
        batches = self._data.batches.get(self._case.name, [])
        return {offset for each in batches if self._is_touched(each) for offset in range(each[2], each[3] + 1)}

    def _is_touched(self, batch: Batch) -> bool:
        size = self._data.batches[self._case.name][-1].end
        match self._case.kind:
            case "doubled":
                return False
            case "halved":
                return batch.end > size // 2
            case "bit flipped":
                return batch.position <= self._flipped_position(size) < batch.end
        return True

    def _flipped_position(self, size: int) -> int:
        return random.Random(self._case.seed).randrange(size)

    def _is_offset_flipped(self) -> bool:
        """Return whether the case flips a bit of a batch's base offset while the broker runs."""
        batches = self._data.batches.get(self._case.name)
        if not batches or self._case.kind != "bit flipped" or self._case.moment != "while it runs":
            return False
        position = self._flipped_position(batches[-1].end)
        return any(position - batch.position in OFFSET for batch in batches)

    def _with_lost_marker(self, name: str, lost: set[int]) -> set[int]:
        """Return the offsets of the committed records whose commit marker may be lost.

        The set `lost` contains the offsets of the damaged batches. For example, `lost` contains the offset 7, and there
        was no record at this offset. A commit marker may have been there, and can have committed any record below it.
        The method therefore returns the offsets of all committed records below 7.
        """
        before = self._data.expected.partitions[name]
        markers = lost - before.records.keys()
        return {offset for offset in before.committed if any(offset < marker for marker in markers)}

    def _check_second_start(self, first: State) -> None:
        self._log.messages.clear()
        second = self._start()
        if self._log.names(self._path):
            raise Broken(f"reported again: {self._log.messages}")
        if second != first:
            raise Broken("the second start does not serve the same")


def main() -> int:
    parser = argparse.ArgumentParser(description="Damage the files of a data directory, and check what clients read.")
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run only the case with this number, and print the broker's log")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only cases whose file path contains TEXT")
    options = parser.parse_args()
    logging.getLogger("hmb").propagate = options.case is not None
    if options.case is not None:
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    outcomes, broken, started = Counter[str](), 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hmb-data-set-", dir=MEMORY) as temporary:
        data = build(Path(temporary), options.seed)
        for number, case in enumerate(islice(cases(data, options.seed), options.cases)):
            if options.case not in (None, number) or options.only not in case.name:
                continue
            try:
                outcomes[run(case, data)] += 1
            except (Broken, Stuck, Exception) as error:
                broken += 1
                print(f"case {number}: {case}: {type(error).__name__}: {error}", flush=True)
                if options.case is not None:
                    raise
    counts = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    print(f"{sum(outcomes.values()) + broken} cases in {time.monotonic() - started:.0f} s: {counts}, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
