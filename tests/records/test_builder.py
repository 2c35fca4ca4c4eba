"""A `RecordsBuilder` writes the same bytes as `encode_batch`, for one record and for many values at once."""

from contextlib import suppress
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from hmb.records import Record, encode_batch, encode_message_set
from hmb.records.batch import wrap_records
from hmb.records.builder import RecordsBuilder
from hmb.records.compression import Codec

TIMESTAMPS = st.integers(-1, 2**62)
CONTENTS = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), CONTENTS), max_size=3).map(tuple)
RECORDS = st.lists(st.builds(Record, st.just(-1), TIMESTAMPS, CONTENTS, CONTENTS, HEADERS), min_size=1)


def batch_of(builder: RecordsBuilder) -> bytes:
    it = builder
    return wrap_records(it.data, it.count, it.base_timestamp, it.max_timestamp, Codec.NONE)


@given(RECORDS)
def test_one_by_one(records: list[Record]) -> None:
    builder = RecordsBuilder()
    for record in records:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    assert batch_of(builder) == encode_batch(records)


@given(
    st.lists(st.tuples(TIMESTAMPS, st.lists(st.binary(max_size=300), min_size=1, max_size=100)), min_size=1, max_size=4)
)
def test_many_at_a_time(pieces: list[tuple[int, list[bytes]]]) -> None:
    builder = RecordsBuilder()
    for timestamp, values in pieces:
        builder.append_values(timestamp, values)
    assert batch_of(builder) == encode_batch(
        [Record(timestamp=timestamp, value=value) for timestamp, values in pieces for value in values]
    )


def test_offset_deltas_of_all_widths_and_lengths_that_look_like_a_placeholder() -> None:
    values = [bytes(length % 70) for length in range(20_000)]  # The varint of some lengths is the byte "%".
    builder = RecordsBuilder()
    for start in range(0, len(values), 333):
        builder.append_values(7, values[start : start + 333])
    assert batch_of(builder) == encode_batch([Record(timestamp=7, value=value) for value in values])


class Interrupted(list[bytes]):
    """A list that simulates Ctrl-C: it raises KeyboardInterrupt when `len` is called more than `patience` times."""

    patience = 0

    def __len__(self) -> int:
        self.patience -= 1
        if self.patience < 0:
            raise KeyboardInterrupt
        return super().__len__()


def test_control_c_leaves_no_records_that_are_not_counted() -> None:
    last = [Record(timestamp=7, value=b"last")]
    for patience in count():
        builder, values = RecordsBuilder(), Interrupted([b"1", b"2"])
        values.patience = patience
        with suppress(KeyboardInterrupt):
            builder.append_values(7, values)
        if interrupted := values.patience < 0:
            assert builder.count == 0
        builder.append_values(7, [b"last"])
        before = [] if interrupted else [Record(timestamp=7, value=value) for value in (b"1", b"2")]
        assert batch_of(builder) == encode_batch(before + last)
        if not interrupted:
            break
    assert patience > 0


@given(
    st.lists(
        st.tuples(TIMESTAMPS, st.integers(0, 90), st.integers(1, 100)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([0, 1]),
)
def test_values_of_one_length_become_messages_without_decoding(
    pieces: list[tuple[int, int, int]], magic: int
) -> None:
    builder = RecordsBuilder()
    records = []
    for timestamp, length, number in pieces:
        values = [bytes([it] * length) for it in range(number)]
        builder.append_values(timestamp, values)
        records += [Record(timestamp=timestamp, value=value) for value in values]
    assert builder.message_set(magic) == encode_message_set(records, magic)


def test_records_outside_of_runs_are_not_converted_fast() -> None:
    builder = RecordsBuilder()
    builder.append_values(7, [b"one", b"two"])
    builder.append(7, b"key", b"value")
    assert builder.message_set(0) is None
