"""The beginning of your answer to the second exercise of lab 11: leader epochs.

Complete `second.py`, and check it with `hmb lab check 11 --second`.
"""


def epoch_starts(epochs):
    """Return a list with a pair for each epoch of a log: the epoch, and the offset of the epoch's first record.

    `epochs[offset]` is the epoch of the record at this offset.
    """
    return []


def end_of_epoch(starts, log_end, epoch):
    """Return where an epoch ends in a log, as a pair: the epoch, and the offset after its last record.

    The list `starts` contains a pair (epoch, offset of its first record) for each epoch of the log. The
    number `log_end` is the offset after the last record of the log.

    If the log does not contain `epoch`, use the next lower epoch in the log. If all epochs of the log are
    greater than `epoch`, return None.
    """
    return epoch, log_end


def truncation_point(starts, log_end, ask):
    """Return the offset at which a follower cuts its log: it deletes all records at and above this offset.

    The list `starts` contains a pair (epoch, offset of its first record) for each epoch of the follower's log.
    The number `log_end` is the offset after the last record of this log.

    The function `ask(epoch)` returns the result of `end_of_epoch` for the leader's log.
    """
    return log_end
