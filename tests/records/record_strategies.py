"""Hypothesis strategies for records."""

from hypothesis import strategies as st

from hmb.records import Record

nullable_bytes = st.none() | st.binary(max_size=40)
timestamps = st.integers(min_value=-1, max_value=2**45)
headers = st.lists(st.tuples(st.text(max_size=5), nullable_bytes), max_size=3).map(tuple)


def record_lists(max_size: int = 12) -> st.SearchStrategy[list[Record]]:
    """Return a strategy for records with ascending offsets and gaps, like those after compaction."""

    def place(drawn: list[tuple[int, Record]]) -> list[Record]:
        offset = -1
        for gap, record in drawn:
            offset += gap
            record.offset = offset
        return [record for _, record in drawn]

    record = st.builds(Record, timestamp=timestamps, key=nullable_bytes, value=nullable_bytes, headers=headers)
    return st.lists(st.tuples(st.integers(1, 300), record), min_size=1, max_size=max_size).map(place)
