"""Tests of the conversion of lines to records, with the options of kcat and kafka-console-producer."""

import io
import os
import threading
from collections.abc import Iterable

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.cli.records.line_formats import KafkaLine, LineRecord, kcat_line
from hmb.cli.records.lines import MAX_LINE, Lines
from hmb.cli.records.record_json import json_line
from hmb.cli.shared.errors import CliError


@pytest.mark.parametrize(
    ("delimiter", "empty_is_null", "key", "line", "record"),
    [
        (b":", False, None, b"k:v:w", LineRecord(b"k", b"v:w")),
        (b":", False, None, b"no key", LineRecord(None, b"no key")),
        (b":", False, b"fixed", b"no key", LineRecord(b"fixed", b"no key")),
        (b":", False, b"fixed", b"own:v", LineRecord(b"own", b"v")),
        (b":", False, None, b":", LineRecord(b"", b"")),
        (b":", True, None, b"k:", LineRecord(b"k", None)),
        (b":", True, None, b":v", LineRecord(None, b"v")),
        (None, True, None, b"", LineRecord(None, None)),
        (None, False, b"fixed", b"v", LineRecord(b"fixed", b"v")),
        (b"::", False, None, b"a:b::c", LineRecord(b"a:b", b"c")),
    ],
)
def test_kcat(delimiter: bytes | None, empty_is_null: bool, key: bytes | None, line: bytes, record: LineRecord) -> None:
    parse = kcat_line(delimiter, empty_is_null, key)
    assert parse is not None
    assert parse(line) == record


def test_a_line_that_is_its_value_needs_no_parser() -> None:
    assert kcat_line(None, False, None) is None


def properties(text: str) -> Iterable[tuple[str, str]]:
    return [(name, value) for name, _, value in (pair.partition("=") for pair in text.split())]


@pytest.mark.parametrize(
    ("given", "line", "record"),
    [
        ("parse.key=true", b"k\tv\tw", LineRecord(b"k", b"v\tw")),
        ("parse.key=true key.separator=:", b"k:v", LineRecord(b"k", b"v")),
        ("parse.headers=true", b"a:1,b:2\tv", LineRecord(None, b"v", (("a", b"1"), ("b", b"2")))),
        ("parse.headers=true parse.key=true", b"a:1\tk\tv", LineRecord(b"k", b"v", (("a", b"1"),))),
        ("parse.headers=true", b"\tv", LineRecord(None, b"v")),
        ("parse.headers=true", b"a:1:2\tv", LineRecord(None, b"v", (("a", b"1:2"),))),
        (
            "parse.headers=true headers.delimiter=| headers.separator=; headers.key.separator==",
            b"a=1;b=2|v",
            LineRecord(None, b"v", (("a", b"1"), ("b", b"2"))),
        ),
        ("parse.key=true null.marker=NULL", b"NULL\tNULL", LineRecord(None, None)),
        ("parse.headers=true null.marker=NULL", b"NULL\tNULL more", LineRecord(None, b"NULL more")),
        (
            "parse.headers=true null.marker=NULL",
            b"a:NULL,NULL:1\tv",
            LineRecord(None, b"v", (("a", None), ("NULL", b"1"))),
        ),
        ("parse.key=true ignore.error=true", b"no key", LineRecord(None, b"no key")),
        ("parse.headers=true ignore.error=true", b"nameonly\tv", LineRecord(None, b"v", (("nameonly", None),))),
        ("null.marker=", b"", LineRecord(None, None)),
    ],
)
def test_kafka(given: str, line: bytes, record: LineRecord) -> None:
    assert KafkaLine(properties(given), None)(line) == record


@pytest.mark.parametrize(
    ("given", "line", "message"),
    [
        ("parse.key=true", b"no key", r"the separator '\t' (key.separator) is missing"),
        ("parse.headers=true", b"no headers", "(headers.delimiter) is missing"),
        ("parse.headers=true", b"a\tv", "the separator ':' (headers.key.separator) is missing"),
        ("parse.headers=true", b"\xff:1\tv", "the name of a header is not UTF-8"),
    ],
)
def test_a_line_without_its_separators(given: str, line: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        KafkaLine(properties(given), None)(line)
    assert message in str(caught.value)


@pytest.mark.parametrize("given", ["parse.keys=true", "parse.key=yes", "key.separator="])
def test_properties_that_mean_nothing(given: str) -> None:
    with pytest.raises(click.UsageError, match="--property"):
        KafkaLine(properties(given), None)


def test_json_with_a_key_for_records_without_one() -> None:
    parse = json_line(b"fixed")
    assert parse(b'{"value": "v"}').key == b"fixed"
    assert parse(b'{"value": null, "key": "own", "partition": 2}') == LineRecord(b"own", None, (), None, 2)


class Portions(io.RawIOBase):
    """A stream whose reads return the given chunks of bytes, one chunk at each read."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._portions = chunks

    def read1(self, size: int = -1) -> bytes:
        return self._portions.pop(0) if self._portions else b""


@given(st.lists(st.binary(max_size=6), max_size=6), st.sampled_from([b"\n", b"ab", b"aab", b"\0\0"]), st.data())
def test_lines_in_any_division_of_the_input(lines: list[bytes], delimiter: bytes, data: st.DataObject) -> None:
    text = delimiter.join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    found = Lines(Portions([it for it in chunks if it]), delimiter=delimiter)  # type: ignore[arg-type]
    expected = text.split(delimiter)
    assert [line for some in found for line in some] == (expected if expected[-1] else expected[:-1])
    found.close()


def test_a_line_without_end_is_named() -> None:
    lines = Lines(Portions([b"first\n", b"\0" * MAX_LINE, b"\0"]), "data.bin")  # type: ignore[arg-type]
    chunks = iter(lines)
    assert next(chunks) == [b"first"]
    with pytest.raises(CliError, match=r"data.bin, line 2: more than 16,777,216 bytes; is the input text?"):
        next(chunks)
    lines.close()


def test_stop_ends_a_wait_for_input() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as stream, os.fdopen(writer, "wb") as end:
        lines = Lines(stream)
        chunks = iter(lines)
        end.write(b"one\ntwo")
        end.flush()
        assert next(chunks) == [b"one"]
        stopper = threading.Thread(target=lines.stop)
        stopper.start()
        assert list(chunks) == [[b"two"]]
        stopper.join()
        lines.close()
