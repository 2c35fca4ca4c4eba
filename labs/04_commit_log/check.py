"""Tests for the requirements of lab 4.

In each test, `answer` is the student's module `answer.py`, `rng` generates random test cases, and `tmp_path` is an
empty folder.
"""

import os
from pathlib import Path

import pytest

RECORDS = [b"tea", b"", b"two\nlines", bytes(range(256)), b"\x00\x00\x00\x05"]


def frame(record):
    return len(record).to_bytes(4, "big") + record


def filled(answer, folder, records):
    """Return a new log that contains the given records. The log's file is in `folder`."""
    log = answer.Log(folder)
    for record in records:
        log.append(record)
    return log


def test_offsets(answer, tmp_path):
    """The first record gets offset 0, and each further record gets the next number."""
    log = answer.Log(tmp_path)
    assert log.end_offset == 0, f"end_offset of an empty log is {log.end_offset!r} (right: 0)"
    for expected in range(4):
        offset = log.append(b"record %d" % expected)
        assert offset == expected, f"append number {expected + 1} returns offset {offset!r} (right: {expected})"
        end = log.end_offset
        assert end == expected + 1, f"end_offset after {expected + 1} appends is {end!r} (right: {expected + 1})"
    log.close()


def test_any_bytes(answer, tmp_path, rng):
    """A record may contain any bytes, and may be empty."""
    records = [*RECORDS, *(rng.randbytes(rng.randrange(40)) for _ in range(20))]
    log = answer.Log(tmp_path)
    for offset, record in enumerate(records):
        log.append(record)
        found = log.read(offset)
        assert found == record, f"the record {record!r} was appended at offset {offset}, and read returns {found!r}"
    content = (tmp_path / "log").read_bytes() if (tmp_path / "log").exists() else None
    assert content is not None, "append writes to the file `log` in the directory; this file does not exist"
    whole = b"".join(map(frame, records))
    begin, found = frame(records[0]), content[: len(frame(records[0]))]
    assert found == begin, f"after append({records[0]!r}) the file begins with {found!r} (right: {begin!r})"
    size = len(content)
    assert content == whole, f"the frames of {len(records)} records have {len(whole)} bytes; the file has {size}"
    log.close()


def test_unknown_offsets(answer, tmp_path):
    """`read` raises IndexError for an offset that no record has."""
    log = filled(answer, tmp_path, [b"a", b"b"])
    for offset in (2, 100, -1):
        with pytest.raises(IndexError):
            found = log.read(offset)
            raise AssertionError(f"a log with 2 records: read({offset}) returns {found!r} instead of IndexError")
    log.close()


def test_reopening(answer, tmp_path, rng):
    """A log that was closed and opened again has all its records, and the next record gets the next offset."""
    records = [*RECORDS, *(rng.randbytes(rng.randrange(40)) for _ in range(20))]
    for count in (0, 1, 2, len(records)):
        case = "1 record" if count == 1 else f"{count} records"
        folder = tmp_path / str(count)
        folder.mkdir()
        filled(answer, folder, records[:count]).close()
        log = answer.Log(folder)
        end = log.end_offset
        assert end == count, f"{case}, close, open: end_offset is {end!r} (right: {count})"
        for offset, record in enumerate(records[:count]):
            found = log.read(offset)
            assert found == record, f"{case}, reopened: read({offset}) returns {found!r} (right: {record!r})"
        offset = log.append(b"next")
        assert offset == count, f"{case}, close, open: the next record gets offset {offset!r} (right: {count})"
        log.close()


def test_only_appends(answer, tmp_path, rng):
    """An append never changes the bytes that the file already contains."""
    log, before = answer.Log(tmp_path), b""
    for number in range(20):
        log.append(rng.randbytes(rng.randrange(40)))
        log.read(rng.randrange(number + 1))
        assert (tmp_path / "log").exists(), "append writes to the file `log` in the directory; this file does not exist"
        now = (tmp_path / "log").read_bytes()
        assert now.startswith(before), f"append number {number + 1} changed the first {len(before)} bytes of the file"
        assert len(now) > len(before), f"append number {number + 1} did not reach the file; call flush after each write"
        before = now
    log.close()


def test_a_crash(answer, tmp_path):
    """`append` writes a record to the file before it returns.

    Python keeps written bytes in the memory of the process until the program calls `flush`. A crash before
    this call loses the bytes.
    """
    process = os.fork()
    if process == 0:  # This is the child process. `os._exit` simulates a crash: Python writes no buffers to files.
        try:
            log = answer.Log(tmp_path)
            log.append(b"kept")
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    log = answer.Log(tmp_path)
    case = "append(b'kept'), and the process ends without close"
    assert log.end_offset == 1, f"{case}: end_offset is {log.end_offset!r} (right: 1); call flush after each write"
    found = log.read(0)
    assert found == b"kept", f"{case}: read(0) returns {found!r} (right: b'kept')"
    log.close()


def test_a_cut_tail(answer, tmp_path, rng):
    """If the end of the last frame is missing in the file, a newly opened log still contains all other records.

    The next append replaces the incomplete record: the new record gets the same offset, and its frame begins at the
    same position.
    """
    for last in (b"lost", bytes(12), rng.randbytes(30)):
        records = [b"kept", b"", last]
        whole = b"".join(map(frame, records))
        for kept in range(1, len(frame(last))):
            folder = tmp_path / f"{len(last)}-{kept}"
            folder.mkdir()
            (folder / "log").write_bytes(whole[: len(whole) - len(frame(last)) + kept])
            where = f"only {kept} of {len(frame(last))} bytes of the last frame {frame(last)[:8]!r}..."
            log = answer.Log(folder)
            assert log.end_offset == 2, f"{where}: end_offset is {log.end_offset!r} (right: 2)"
            offset = log.append(b"new")
            assert offset == 2, f"{where}: the next record gets offset {offset!r} (right: 2)"
            log.close()
            log = answer.Log(folder)
            found = [log.read(each) for each in range(log.end_offset)]
            assert found == [b"kept", b"", b"new"], f"{where}, append(b'new'), close, open: the log has {found!r}"
            log.close()


def bytes_read():
    """Return how many bytes this process has read from files, or 0 on a system other than Linux."""
    counters = Path("/proc/self/io")
    return int(counters.read_text().split()[1]) if counters.exists() else 0


def test_reading_one_record(answer, tmp_path):
    """The log keeps the position of each record in memory, so `read` does not read the whole file."""
    (tmp_path / "log").write_bytes(frame(bytes(1000)) * 10_000)
    log = answer.Log(tmp_path)
    case = "the check has written a file `log` with 10,000 records, and opens it with Log(directory)"
    end = log.end_offset
    assert end == 10_000, f"{case}: end_offset is {end!r} (right: 10000); load the records of the file"
    before = bytes_read()
    for _ in range(20):
        found = log.read(9_999)
        assert found == bytes(1000), f"{case}: read(9999) returns {found!r:.40} (right: 1,000 zero bytes)"
    megabytes = (bytes_read() - before) / 1e6
    assert megabytes < 20, f"a log of 10 MB: 20 reads of one record took {megabytes:.0f} MB from the file"
    log.close()
