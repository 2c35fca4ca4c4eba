"""Tests for the requirements of lab 13.

In each test, `answer` is the student's module `answer.py`, and `rng` generates random test cases.
"""

import pytest


def appended(answer, partition, *batches):
    """Append batches, and return their offsets. A batch is (producer id, epoch, first sequence number, count).

    The check fails if `append` refuses one of the batches.
    """
    offsets = []
    for number, batch in enumerate(batches):
        try:
            offsets.append(partition.append(*batch))
        except (answer.OutOfOrder, answer.Fenced) as error:
            case = f"after {list(batches[:number])}, append{batch}"
            raise AssertionError(f"{case} must not raise an error, but raises {type(error).__name__}") from error
    return offsets


def refused(answer, kind, before, batch):
    """Check that `append` accepts all batches in `before`, but then refuses `batch`.

    For `batch`, `append` must raise an exception of class `kind`, and must not change the end offset.
    """
    partition = answer.Partition()
    appended(answer, partition, *before)
    end = partition.end_offset
    case = f"after {before}, append{batch}"
    try:
        offset = partition.append(*batch)
    except kind:
        moved = partition.end_offset
        assert moved == end, f"{case} raises {kind.__name__}, but moves end_offset to {moved}"
    except (answer.OutOfOrder, answer.Fenced) as error:
        raise AssertionError(f"{case} must raise {kind.__name__}, but raises {type(error).__name__}") from error
    else:
        raise AssertionError(f"{case} must raise {kind.__name__}, but returns {offset!r}")


def test_in_order(answer, rng):
    """If one producer's batches arrive in order, `append` assigns consecutive offsets to their records."""
    batches, sequence = [], 0
    for _ in range(30):
        count = rng.randrange(1, 6)
        batches.append((7, 0, sequence, count))
        partition = answer.Partition()
        offset = appended(answer, partition, *batches)[-1]
        case = f"the batch with the sequence numbers {sequence} to {sequence + count - 1}"
        assert offset == sequence, f"{case} gets offset {offset!r}"
        sequence += count
        assert partition.end_offset == sequence, f"end_offset is {partition.end_offset} after {sequence} records"


def test_copies(answer):
    """For a copy of one of the last five batches, `append` returns the offset of the original, and appends nothing."""
    batches = [(7, 0, 10 * number, 10) for number in range(8)]
    for length in (1, 2, 6, 8):
        partition = answer.Partition()
        appended(answer, partition, *batches[:length])
        for number in range(max(0, length - 5), length):
            batch_word = "batch" if length == 1 else "batches"
            case = f"after {length} {batch_word} of 10 records, batch number {number + 1} comes again"
            try:
                offset = partition.append(*batches[number])
            except (answer.OutOfOrder, answer.Fenced) as error:
                raise AssertionError(f"{case}: append raises {type(error).__name__}") from error
            assert offset == 10 * number, f"{case}: append returns {offset!r} (right: {10 * number})"
            assert partition.end_offset == 10 * length, f"{case}: end_offset grows to {partition.end_offset}"
        following = partition.append(7, 0, 10 * length, 10)
        assert following == 10 * length, f"after copies, the next batch gets {following!r} (right: {10 * length})"


def test_out_of_order(answer):
    """`append` raises `OutOfOrder` if a new batch begins with a wrong sequence number.

    The first batch of a producer, and the first batch of each new epoch, must begin with 0. Each later batch must
    begin with the number after the producer's last record. A batch is new if it differs from each of the
    producer's last five batches.
    """
    refused(answer, answer.OutOfOrder, [], (7, 0, 3, 1))
    refused(answer, answer.OutOfOrder, [(7, 0, 0, 5)], (7, 0, 6, 1))
    refused(answer, answer.OutOfOrder, [(7, 0, 0, 5), (7, 0, 5, 5)], (7, 0, 5, 3))
    refused(answer, answer.OutOfOrder, [(7, 0, 0, 5), (7, 0, 5, 5)], (7, 0, 4, 6))
    refused(answer, answer.OutOfOrder, [(7, 0, 10 * number, 10) for number in range(6)], (7, 0, 0, 10))
    refused(answer, answer.OutOfOrder, [(7, 0, 0, 5)], (7, 1, 5, 5))
    partition = answer.Partition()
    appended(answer, partition, (7, 0, 0, 5))
    with pytest.raises(answer.OutOfOrder):
        partition.append(7, 1, 5, 5)
    case = "after [(7, 0, 0, 5)] and the refused batch (7, 1, 5, 5), append(7, 0, 5, 5)"
    why = "a refused batch of a new epoch changes nothing, so the epoch 0 is still valid"
    try:
        offset = partition.append(7, 0, 5, 5)
    except (answer.OutOfOrder, answer.Fenced) as error:
        raise AssertionError(f"{case} must return 5, but raises {type(error).__name__}; {why}") from error
    assert offset == 5, f"{case} returns {offset!r} (right: 5); {why}"


def test_epochs(answer):
    """`append` raises `Fenced` if a batch has an older epoch than a stored batch of the same producer.

    The batches of one producer do not affect the sequence numbers of another producer.
    """
    refused(answer, answer.Fenced, [(7, 0, 0, 5), (7, 1, 0, 5)], (7, 0, 5, 5))
    refused(answer, answer.Fenced, [(7, 0, 0, 5), (7, 1, 0, 5)], (7, 0, 0, 5))
    refused(answer, answer.Fenced, [(7, 1, 0, 5)], (7, 0, 0, 3))
    partition = answer.Partition()
    batches = [(7, 0, 0, 2), (8, 0, 0, 3), (7, 0, 2, 2), (7, 1, 0, 2), (8, 0, 3, 1), (7, 1, 2, 1)]
    found = appended(answer, partition, *batches)
    assert found == [0, 2, 5, 7, 9, 10], f"the batches {batches} get the offsets {found} (right: [0, 2, 5, 7, 9, 10])"


def expected_of(log):
    """Return the correct result of `read_committed(log)`, a list of offsets.

    This function is simple but slow: for each record, it searches the rest of the log for markers.
    """
    found = []
    for offset, (kind, producer_id) in enumerate(log):
        markers = [each for each, owner in log[offset + 1 :] if owner == producer_id and each != "record"]
        if kind == "record" and producer_id is not None and not markers:
            return found
        if kind == "record" and (producer_id is None or markers[0] == "commit"):
            found.append(offset)
    return found


def compare(answer, log):
    found, expected = list(answer.read_committed(list(log))), expected_of(log)
    assert found == expected, f"read_committed({log}) returns {found} (right: {expected})"


def test_aborted(answer, rng):
    """`read_committed` returns no records of aborted transactions and no markers."""
    compare(answer, [("record", None), ("record", 7), ("commit", 7)])
    compare(answer, [("record", 7), ("record", None), ("abort", 7)])
    compare(answer, [("record", 7), ("abort", 7), ("record", 7), ("commit", 7)])
    compare(answer, [("record", 7), ("record", 8), ("commit", 8), ("abort", 7)])
    for _ in range(100):
        log = [(rng.choice(["record", "record", "commit", "abort"]), rng.choice([7, 8])) for _ in range(8)]
        compare(answer, [*log, ("commit", 7), ("abort", 8)])


def test_the_last_stable_offset(answer, rng):
    """`read_committed` returns only offsets below the last stable offset.

    The last stable offset is the offset of the first record that belongs to an open transaction.
    """
    compare(answer, [("record", None), ("record", 7), ("record", None)])
    compare(answer, [("record", 7), ("record", 8), ("commit", 8), ("record", None)])
    for _ in range(200):
        count = rng.randrange(10)
        kinds = [rng.choice(["record", "record", "record", "commit", "abort"]) for _ in range(count)]
        compare(answer, [(kind, rng.choice([7, 8] if kind != "record" else [7, 8, None])) for kind in kinds])
