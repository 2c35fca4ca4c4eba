"""Tests every writer with every reader. Each reader must read exactly the bytes that the writer has written.

    python -m tests.conformance.matrix --records 200000            # all writers x all readers, uncompressed
    python -m tests.conformance.matrix --records 20000 --codecs    # each writer with each of its codecs x all readers
    python -m tests.conformance.matrix --against kafka43           # the same clients against Apache Kafka, to compare

Each writer writes its topic once, and each reader reads every topic. Afterwards the broker is stopped, and Kafka's
DumpLogSegments checks the files of the broker. Each batch must be valid and have the requested codec. Each topic must
have as many records as its writer has sent. Each index must pass the check that Kafka runs when it starts.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hmb.bench import peers

from .clients import READERS, WRITERS, Reader, Writer
from .dataset import write_lines
from .java_clients import Dump, dump_logs, index_complaints

BROKERS: dict[str, type[peers.Peer]] = {"hmb": peers.Hmb, "kafka43": peers.Kafka43, "kafka082": peers.Kafka082}


@dataclass(frozen=True)
class Row:
    """A row of the matrix: the topic that one writer writes with one codec."""

    writer: Writer
    codec: str

    @property
    def topic(self) -> str:
        return f"{self.writer.name}-{self.codec}"

    def is_for(self, reader: Reader) -> bool:
        return (self.writer.magic, self.codec) not in reader.refuses


def rows(writers: Iterable[Writer], *, codecs: bool) -> list[Row]:
    return [Row(writer, codec) for writer in writers for codec in (writer.codecs if codecs else ("none",))]


class Matrix:
    """Writes the lines of a file to a broker with some clients, and reads them with other clients.

    `read` raises AssertionError if the lines that the client has read differ from the lines of the file.
    """

    def __init__(self, broker: peers.Peer, lines: Path) -> None:
        self.broker = broker
        self.lines = lines
        self.expected = lines.read_bytes()
        self.records = self.expected.count(b"\n")
        self.outcomes: dict[Row, Exception | None] = {}

    def write(self, row: Row) -> None:
        """Write the topic of a row, but only at the first call.

        If the first call failed, later calls raise the same error.
        """
        if row not in self.outcomes:
            try:
                row.writer.write(self.broker.bootstrap, row.topic, self.lines, row.codec)
                self.outcomes[row] = None
            except Exception as error:
                self.outcomes[row] = error
                raise
        elif (earlier := self.outcomes[row]) is not None:
            raise earlier

    def read(self, row: Row, reader: Reader) -> None:
        problem = difference(self.expected, reader.read(self.broker.bootstrap, row.topic, self.records))
        assert problem is None, problem

    def check_files(self, written: Iterable[Row]) -> dict[Row, str]:
        """Run Kafka's tools on the files of the topics after the broker has stopped.

        Return the problem of each row, or "".
        """
        problems: dict[Row, str] = {}
        folders = {row: self.broker.data_dir / f"{row.topic}-0" for row in written}
        if not folders:
            return problems
        dumps = dump_logs([file for folder in folders.values() for file in sorted(folder.glob("*.log"))])
        complaints = index_complaints([file for folder in folders.values() for file in folder.glob("*.*index")])
        for row, folder in folders.items():
            of_row = [dump for file, dump in dumps.items() if file.parent == folder]
            of_indexes = [complaint for complaint in complaints if str(folder) in complaint]
            if problem := self._problem(row, of_row, of_indexes):
                problems[row] = problem
        return problems

    def _problem(self, row: Row, dumps: list[Dump], index_complaints: list[str]) -> str | None:
        complaints = [complaint for dump in dumps for complaint in dump.complaints] + index_complaints
        offsets = [offset for dump in dumps for offset in dump.offsets]
        codecs = {codec for dump in dumps for codec in dump.codecs}
        if complaints:
            return f"{len(complaints)} complaints, the first: {complaints[0]}"
        if offsets != list(range(self.records)):
            return f"{len(offsets)} records, not {self.records}, or their offsets have gaps"
        # librdkafka sends a batch uncompressed if compression does not make the batch smaller, for example with one
        # record.
        right = row.codec in codecs and codecs <= {row.codec, "none"}
        return None if right else f"batches in {sorted(codecs)}, not {row.codec}"


def difference(expected: bytes, got: bytes) -> str | None:
    """Describe the first difference between the written and the read lines, or return None if they are equal."""
    if expected == got:
        return None
    wrote, read = expected.splitlines(), got.splitlines()
    for number, (one, other) in enumerate(zip(wrote, read, strict=False)):
        if one != other:
            return f"record {number} of {len(wrote)} is {other[:60]!r}, not {one[:60]!r}"
    return f"{len(read)} records, not {len(wrote)}"


class Table:
    """A table in the terminal with a line for each topic.

    Each cell contains the duration in seconds, or the problem.
    """

    def __init__(self, columns: list[str]) -> None:
        self.problems: list[str] = []
        self.width = max(map(len, columns)) + 2
        print(f"{'seconds':32}", *(f"{column:>{self.width}}" for column in columns), sep="", flush=True)

    def start(self, label: str) -> None:
        print(f"\n{label:32}", end="", flush=True)

    def cell(self, what: str, action: Callable[[], None]) -> bool:
        """Run the function `action`, and print one cell of the table. Return whether the function succeeded.

        The cell contains the duration in seconds, FAIL after an error, or `-` if the client is not installed.
        """
        started = time.monotonic()
        try:
            action()
            text = f"{time.monotonic() - started:.1f}"
        except peers.PeerUnavailable:
            text = "-"
        except Exception as error:  # noqa: BLE001 - any failure of any client is a cell, and not the end of the table
            self.problems.append(f"{what}: {type(error).__name__}: {error}")
            text = "FAIL"
        self.put(text)
        return text not in ("-", "FAIL")

    def put(self, text: str) -> None:
        print(f"{text:>{self.width}}", end="", flush=True)


def run(matrix: Matrix, table_rows: list[Row], readers: list[Reader]) -> list[str]:
    """Run all writers and readers, and print the table. Then check the broker's files. Return all problems."""
    table = Table(["write", *(reader.name for reader in readers)])
    with matrix.broker:
        written = [row for row in table_rows if fill(table, matrix, row, readers)]
        matrix.broker.stop()
        print("\n\nDumpLogSegments of Kafka 4.3.0 over the files ...", flush=True)
        try:
            files = matrix.check_files(written)
        except peers.PeerUnavailable as missing:
            print(missing)
        else:
            table.problems.extend(f"files of {row.topic}: {problem}" for row, problem in files.items())
            print(f"every batch valid, every record there: {len(written) - len(files)} of {len(written)} topics")
        if table.problems:
            table.problems.append(f"the broker's log ends:\n{matrix.broker.log_tail()}")
    return table.problems


def fill(table: Table, matrix: Matrix, row: Row, readers: list[Reader]) -> bool:
    """Fill one line of the table. Return whether the writer could write its records."""
    table.start(row.topic)
    if not table.cell(f"write {row.topic}", partial(matrix.write, row)):
        return False
    for reader in readers:
        if row.is_for(reader):
            table.cell(f"read {row.topic} with {reader.name}", partial(matrix.read, row, reader))
        else:
            table.put("refuses")
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="Every writer with every reader, byte for byte.")
    parser.add_argument("--records", type=int, default=2_000)
    parser.add_argument("--codecs", action="store_true", help="each writer with each of its codecs")
    parser.add_argument("--against", choices=BROKERS, default="hmb")
    parser.add_argument("--writers", nargs="+", choices=[each.name for each in WRITERS])
    parser.add_argument("--readers", nargs="+", choices=[each.name for each in READERS])
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # Clients log a warning if their metadata request creates a topic.
    writers = [each for each in WRITERS if options.writers is None or each.name in options.writers]
    readers = [each for each in READERS if options.readers is None or each.name in options.readers]
    with tempfile.TemporaryDirectory(prefix="hmb-matrix-") as folder:
        lines = write_lines(Path(folder) / "lines", options.records)
        broker = BROKERS[options.against]()
        print(f"{options.records} records against {broker.name}")
        problems = run(Matrix(broker, lines), rows(writers, codecs=options.codecs), readers)
    print(*(problems or ["all the same, byte for byte"]), sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
