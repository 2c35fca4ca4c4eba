"""Tests for the requirements of lab 15.

In each test, `answer` is the student's module `answer.py`, and `tmp_path` is an empty folder.
"""

from hmb.labs.crashes import crashing


class Source:
    """A source of records, like a topic with one partition. Each record can be read several times."""

    def __init__(self, records):
        self.records = list(records)

    def end(self):
        return len(self.records)

    def read(self, begin, end):
        return self.records[begin:end]


def compare(name, found, expected):
    found = tuple(found) if isinstance(found, list) else found
    assert found == expected, f"{name} returns {found!r} (right: {expected})"


def test_ranges(answer, tmp_path):
    """`plan` returns the next range with at most `max_records` records.

    It returns None if the source has no new record.
    """
    compare("plan(folder, 0, 10)", answer.plan(tmp_path, 0, 10), None)
    compare("plan(folder, 25, 10)", answer.plan(tmp_path, 25, 10), (0, 0, 10))
    answer.commit(tmp_path, 0)
    compare("after commit(folder, 0), plan(folder, 25, 10)", answer.plan(tmp_path, 25, 10), (1, 10, 20))
    answer.commit(tmp_path, 1)
    compare("after commit(folder, 1), plan(folder, 25, 10)", answer.plan(tmp_path, 25, 10), (2, 20, 25))
    answer.commit(tmp_path, 2)
    compare("after commit(folder, 2), plan(folder, 25, 10)", answer.plan(tmp_path, 25, 10), None)
    compare("after commit(folder, 2), plan(folder, 26, 10)", answer.plan(tmp_path, 26, 10), (3, 25, 26))


def test_an_unfinished_batch(answer, tmp_path):
    """If the last planned batch is not committed, `plan` returns this batch again, with the same range."""
    compare("plan(folder, 5, 10)", answer.plan(tmp_path, 5, 10), (0, 0, 5))
    compare("the next plan(folder, 8, 10), without a commit,", answer.plan(tmp_path, 8, 10), (0, 0, 5))
    answer.commit(tmp_path, 0)
    compare("after commit(folder, 0), plan(folder, 8, 2)", answer.plan(tmp_path, 8, 2), (1, 5, 7))
    compare("the next plan(folder, 8, 100), without a commit,", answer.plan(tmp_path, 8, 100), (1, 5, 7))


def test_many_batches(answer, tmp_path):
    """Batches are ordered by their numbers, not by the names of their files: batch 10 comes after batch 9."""
    for number in range(12):
        found = answer.plan(tmp_path, 12, 1)
        compare(f"after {number} batches, plan(folder, 12, 1)", found, (number, number, number + 1))
        answer.write_output(tmp_path, number, [number])
        answer.commit(tmp_path, number)
    found = list(answer.read_output(tmp_path))
    assert found == list(range(12)), f"12 batches with one row each: read_output returns {found}"


def test_output(answer, tmp_path):
    """If `write_output` is called again for the same batch, the new rows replace the old ones."""
    answer.write_output(tmp_path, 0, ["a", "b"])
    answer.write_output(tmp_path, 1, ["c"])
    answer.write_output(tmp_path, 0, ["a", "b"])
    found = list(answer.read_output(tmp_path))
    assert found == ["a", "b", "c"], f"output 0, 1 and again 0: read_output returns {found} (right: ['a', 'b', 'c'])"


def test_run(answer, tmp_path):
    """`run` processes all records. A later call of `run` processes only the records that have arrived since then."""
    source = Source(range(23))
    answer.run(tmp_path, source, lambda record: 2 * record, 5)
    found = list(answer.read_output(tmp_path))
    assert found == [2 * record for record in range(23)], f"records 0 to 22, doubled: read_output returns {found}"
    source.records += [100, 101]
    answer.run(tmp_path, source, lambda record: 2 * record, 5)
    found = list(answer.read_output(tmp_path))
    assert found[23:] == [200, 202], f"two new records, 100 and 101: read_output ends with {found[23:]}"


def test_crashes(answer, tmp_path):
    """If `run` crashes at any line, a second call of `run` completes the output.

    The output then contains the row of each record exactly once.
    """
    for line in range(2000):
        folder, source = tmp_path / str(line), Source(range(6))
        folder.mkdir()
        has_crashed = crashing(answer, line, lambda source=source, folder=folder: answer.run(folder, source, abs, 2))
        source.records += [6]
        case = f"records 0 to 5, max_records 2, a crash before step {line + 1}, a new record 6, and a second run"
        try:
            answer.run(folder, source, abs, 2)
            found = list(answer.read_output(folder))
        except Exception as error:  # The student's code may raise any exception.
            raise AssertionError(f"{case}: {type(error).__name__}: {error}") from error
        assert found == list(range(7)), f"{case}: read_output returns {found}"
        if not has_crashed:
            return
    raise AssertionError(
        "the function `run` executes more than 2,000 lines of code for six records; does `run` wait in a loop?"
    )
