"""The beginning of your answer to the second exercise of lab 11: leader epochs.

Complete `second.py`, and check it with `hmb lab check 11 --second`.
"""


def epoch_starts(epochs):
    """Return a list with a pair for each epoch of a log: the epoch, and the offset of the epoch's first record.

    `epochs[offset]` is the epoch of the record at this offset.
    """
    return []


def end_of_epoch(starts, log_end, epoch):
    """Return a pair: the greatest epoch at or below `epoch`, and the offset after the last record of that epoch.

    `starts` contains the epochs of a log, as `epoch_starts` returns them. `log_end` is the offset after the last
    record of the log. If all epochs of the log are greater than `epoch`, return None.
    """
    return epoch, log_end


def truncation_point(starts, log_end, ask):
    """Return the offset at which a follower cuts its log: it deletes its records at and above this offset.

    `starts` and `log_end` describe the follower's log. `ask(epoch)` returns the result of `end_of_epoch` for the
    leader's log.
    """
    return log_end
