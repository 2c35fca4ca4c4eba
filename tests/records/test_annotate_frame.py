"""Tests of the annotation of a frame and its records: every byte is in exactly one line, and errors are reported."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmb.protocol.annotate import Line, annotate_request, annotate_response
from hmb.protocol.messages.fetch import FetchResponse
from hmb.records import Codec, Record, encode_batch, encode_message_set
from hmb.records.annotate_frame import annotate_frame, annotate_records
from tests.golden.files import load

GOLDEN = Path(__file__).parents[1] / "golden"
FRAMES = {path.stem: load(path)["request"].wire for path in sorted(GOLDEN.glob("*.txt"))}
RECORDS = [Record(timestamp=1000, key=b"k", value=b"v" * 30), Record(timestamp=1001, value=b"w")]
BATCH = encode_batch(RECORDS)


def assert_covered(lines: Iterable[tuple[Line, bool]], wire: bytes) -> None:
    assert b"".join(line.data for line, is_inside in lines if not is_inside) == wire


@pytest.mark.parametrize("name", FRAMES)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_every_byte_of_a_damaged_frame_is_in_one_line(name: str, data: st.DataObject) -> None:
    mutated = bytearray(FRAMES[name])
    for _ in range(data.draw(st.integers(0, 3))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    wire = memoryview(mutated[: data.draw(st.integers(0, len(mutated)))])
    assert_covered(annotate_frame(annotate_request(wire), wire, [], may_be_cut=False), wire)


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_every_byte_of_damaged_records_is_in_one_line(data: st.DataObject) -> None:
    batches = [encode_batch(RECORDS, codec=data.draw(st.sampled_from(Codec))), encode_message_set(RECORDS, 1)]
    mutated = bytearray(b"".join(batches))
    mutated[data.draw(st.integers(0, len(mutated) - 1))] ^= data.draw(st.integers(1, 255))
    assert_covered(annotate_records(memoryview(mutated), 0, "", []), mutated)


def test_the_batch_after_a_wrong_crc_is_annotated() -> None:
    wrong = BATCH.replace(b"vvv", b"vVv", 1)
    lines = list(annotate_records(memoryview(BATCH + wrong + BATCH), 100, "records.", problems := []))
    assert [problem.partition(" is ")[0] for problem in problems] == [f"byte {100 + len(BATCH)}: the batch's CRC"]
    assert "records.batches[2].records[1].value" in [line.path for line, _ in lines]


def test_what_a_fetch_returns_may_end_inside_a_batch() -> None:
    partition = FetchResponse.FetchableTopicResponse.PartitionData(records=memoryview(BATCH + BATCH[:70]))
    topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
    body = b"".join(bytes(part) for part in FetchResponse(responses=[topic]).encode_parts(4))  # type: ignore[arg-type]
    wire = memoryview((4 + len(body)).to_bytes(4, "big") + bytes(4) + body)
    for may_be_cut in (True, False):
        problems: list[str] = []
        answer = annotate_response(FetchResponse, 4, wire)
        lines = [line for line, _ in annotate_frame(answer, wire, problems, may_be_cut=may_be_cut)]
        assert lines[-1].path.endswith("records.batches[1].cut")
        assert len(problems) == (not may_be_cut)


def test_bytes_after_the_message_are_named_left() -> None:
    wire = memoryview(FRAMES["metadata_v13_kafka-4.3.0"] + b"\0\1\2")
    *_, (line, _) = annotate_frame(annotate_request(wire), wire, problems := [], may_be_cut=False)
    assert (line.path, bytes(line.data), problems) == ("left", b"\0\1\2", [])
