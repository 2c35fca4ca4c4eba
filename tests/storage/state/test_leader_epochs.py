"""Tests of the end offsets of leader epochs. The expected values come from a list with the epoch of every offset."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.storage.state import checkpoints
from hmb.storage.state.leader_epochs import LeaderEpochs
from hmb.storage.state.manifest import DamagedStateFile

EPOCHS = LeaderEpochs([(0, 0), (2, 100), (5, 250)])


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(-2, (-2, 0)), (-1, None), (0, (0, 100)), (1, (0, 100)), (2, (2, 250)), (4, (2, 250)), (5, (5, 300)), (6, None)],
)
def test_an_epoch_ends_where_the_next_one_begins(epoch: int, end: tuple[int, int] | None) -> None:
    assert EPOCHS.end_of(epoch, 0, 300) == end


def test_an_epoch_older_than_all_known_ends_where_they_begin() -> None:
    assert LeaderEpochs([(3, 40), (4, 50)]).end_of(1, 0, 99) == (1, 40)


def test_deleted_records_take_their_epochs_with_them() -> None:
    assert EPOCHS.end_of(0, 120, 300) == (0, 120)
    assert EPOCHS.end_of(3, 120, 300) == (2, 250)
    assert EPOCHS.end_of(2, 250, 300) == (2, 250)
    assert EPOCHS.end_of(5, 250, 300) == (5, 300)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(0, 40), st.integers(0, 29))
def test_epochs_match_a_list_of_the_epoch_of_each_offset(steps: list[int], epoch: int, deleted: int) -> None:
    """`LeaderEpochs` returns the same epochs and end offsets as a plain list with one epoch for each offset.

    The epochs in the list never decrease.
    """
    epochs = [sum(steps[: number + 1]) for number in range(len(steps))]
    starts = {known: epochs.index(known) for known in epochs}
    found = LeaderEpochs(list(starts.items()))
    assert [found.at(offset) for offset in range(len(epochs))] == epochs
    first = min(deleted, len(epochs) - 1)
    left = epochs[first:]
    end = found.end_of(epoch, first, len(epochs))
    if epoch > epochs[-1]:
        assert end is None
    else:
        assert end is not None
        assert end.epoch == max((known for known in left if known <= epoch), default=epoch)
        assert end.end_offset == first + sum(known <= epoch for known in left)


def test_the_checkpoint_keeps_them_in_kafkas_format(tmp_path: Path) -> None:
    (tmp_path / checkpoints.LEADER_EPOCHS).write_text(checkpoints.leader_epochs_content(EPOCHS))
    assert (tmp_path / checkpoints.LEADER_EPOCHS).read_text() == "0\n3\n0 0\n2 100\n5 250\n"
    assert checkpoints.read_leader_epochs(tmp_path).starts == EPOCHS.starts


@pytest.mark.parametrize("lines", ["1\n", "1 2 3\n", "1 x\n", "-1 0\n", "2 0\n1 5\n", "1 5\n2 0\n", "1 0\n1 0\n"])
def test_a_damaged_checkpoint_is_reported(tmp_path: Path, lines: str) -> None:
    path = tmp_path / checkpoints.LEADER_EPOCHS
    path.write_text(f"0\n{lines.count(chr(10))}\n{lines}")
    with pytest.raises(DamagedStateFile, match="leader-epoch-checkpoint"):
        checkpoints.read_leader_epochs(tmp_path)
