"""Tests of the producers' state after recovery.

Recovery reads only a few batches of a segment again. The producers' state must be the same as after reading all
batches.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hmb.records import (
    ControlType,
    EndTransactionMarker,
    Record,
    RecordBatch,
    encode_batch,
    encode_marker,
    iter_batches,
)
from hmb.storage.config import LogConfig
from hmb.storage.producer_state import ProducerState, snapshot_path
from hmb.storage.recovery.loading import LogCheckpoint, load

KINDS = ("idempotent", "transactional", "commit", "abort")
Event = tuple[str, int, bool]  # the kind, the producer id, and whether the producer has a new epoch
event = st.tuples(st.sampled_from(KINDS), st.integers(1, 2), st.sampled_from([False, False, False, True]))
runs = st.lists(st.tuples(event, st.integers(1, 8)), min_size=1, max_size=10)


def write(directory: Path, happened: list[Event]) -> bytes:
    """For each event, write a batch of two records, or a marker.

    Write no snapshots. Return the log's bytes.
    """
    data, offset = b"", 0
    epochs = {1: 0, 2: 0}
    for number, (kind, producer_id, new_epoch) in enumerate(happened):
        epochs[producer_id] += new_epoch
        epoch = epochs[producer_id]
        if kind in ("commit", "abort"):
            marker = EndTransactionMarker(ControlType[kind.upper()], number)
            data += encode_marker(marker, 1_000 + number, producer_id, epoch, base_offset=offset)
            offset += 1
            continue
        data += encode_batch(
            [Record(0, 1_000 + number, b"k", b"v"), Record(0, 1_000, b"k", b"v")],
            base_offset=offset, producer_id=producer_id, producer_epoch=epoch, base_sequence=2 * number,
            transactional=kind == "transactional",
        )  # fmt: skip
        offset += 2
    (directory / f"{0:020d}.log").write_bytes(data)
    return data


def replay(state: ProducerState, data: bytes, numbers: slice) -> ProducerState:
    """Update `state` with the batches that the slice `numbers` selects from `data`. Return `state`."""
    for batch in list(iter_batches(data))[numbers]:
        assert isinstance(batch, RecordBatch)
        state.replay(batch)
    return state


@settings(deadline=None)
@given(runs=runs, snapshot_at=st.integers(0, 40))
def test_a_recovered_log_knows_its_producers_as_if_it_had_replayed_all(
    runs: list[tuple[Event, int]], snapshot_at: int
) -> None:
    happened = [(kind, producer, epoch and not i) for (kind, producer, epoch), n in runs for i in range(n)]
    with tempfile.TemporaryDirectory() as name:
        directory, state = Path(name), ProducerState(0)
        data = write(directory, happened)
        begin = snapshot_at if snapshot_at < len(happened) else 0
        if begin:
            path = snapshot_path(directory, list(iter_batches(data))[begin].base_offset)
            replay(ProducerState(0), data, slice(begin)).write_snapshot(path)
            if any(kind != "idempotent" for kind, _, _ in happened):
                begin = 0  # Recovery reads the whole segment to rebuild its transaction index.
            else:
                state.load_snapshot(path)
        expected = replay(state, data, slice(begin, None))
        found = load(directory, LogConfig(), LogCheckpoint(recovery_point=0, is_clean=False), now=0).producers
        assert vars(found) == vars(expected)
