"""Tests each pair of a writer and a reader with few records. `matrix.py` tests them with many records."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hmb.bench import peers
from tests.conformance.clients import READERS, WRITERS, Reader
from tests.conformance.dataset import write_lines
from tests.conformance.matrix import Matrix, Row, difference, rows

pytestmark = pytest.mark.external

RECORDS = 2_000
ROWS = rows(WRITERS, codecs=True)
NEW_READERS = ("hmb", "confluent-kafka")


def pairs() -> Iterator[object]:
    """Yield the pairs of writers and readers to test.

    Every reader reads the uncompressed records of every writer, and HMB's records in every codec. If another writer
    compresses its records, only the readers in `NEW_READERS` read them.
    """
    for row in ROWS:
        for reader in READERS:
            chosen = row.codec == "none" or row.writer.name == "hmb" or reader.name in NEW_READERS
            if chosen and row.is_for(reader):
                yield pytest.param(row, reader, id=f"{row.topic}-read-by-{reader.name}")


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    folder = tmp_path_factory.mktemp("matrix")
    with peers.Hmb(folder / "hmb") as broker:
        yield Matrix(broker, write_lines(folder / "lines", RECORDS))
        print(broker.log_tail())  # pytest shows the broker's log if a test fails.


@pytest.mark.parametrize(("row", "reader"), list(pairs()))
def test_each_reader_reads_the_lines_of_each_writer(matrix: Matrix, row: Row, reader: Reader) -> None:
    matrix.write(row)
    matrix.read(row, reader)


def test_kafkas_dump_accepts_every_file(matrix: Matrix) -> None:
    """Kafka's dump tool accepts every file that HMB has written.

    The files are complete only after the broker has stopped, so this test runs last.
    """
    written = [row for row, failure in matrix.outcomes.items() if failure is None]
    matrix.broker.stop()
    assert matrix.check_files(written) == {}


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (b"one\ntwo\n", None),
        (b"one\n", "1 records, not 2"),
        (b"two\none\n", "record 0 of 2 is b'two', not b'one'"),
        (b"one\ntwo\ntwo\n", "3 records, not 2"),
    ],
)
def test_a_difference_is_described(got: bytes, expected: str | None) -> None:
    assert difference(b"one\ntwo\n", got) == expected
