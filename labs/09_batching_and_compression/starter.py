"""The beginning of your answer to lab 9: form batches, and choose the settings of a producer.

Complete `answer.py`, and check it with `hmb lab check 9`.
"""


def cut_batches(records, linger, batch_size):
    """Return a pair (time of sending, list of record sizes) for each batch that a producer sends."""
    return [(time, [size]) for time, size in records]


def compressed_sizes(values, compress, count):
    """Compress the values in batches of `count` values, and return the size of each compressed batch."""
    return [len(compress(value)) for value in values]


def frontier(runs):
    """Return the runs (settings, latency, rate) that no other run beats. Sort them by latency.

    A low latency and a high rate are good. Run A beats run B if A is better in one of the two values, and not worse
    in the other value.
    """
    return runs


def choose(runs, max_latency, min_rate):
    """Return the settings of the best run, or None if no run is allowed.

    A run is allowed if its latency is at most `max_latency` and its rate is at least `min_rate`. The best run
    is the allowed run with the highest rate.
    """
    return runs[0][0]
