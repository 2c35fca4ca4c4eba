"""A wrong answer to lab 9: after the waiting time `linger`, a batch is not sent until the next record arrives."""


def cut_batches(records, linger, batch_size):
    batches, sizes, due = [], [], 0
    for time, size in records:
        if sizes and (due <= time or sum(sizes) + size > batch_size):
            batches.append((time, sizes))
            sizes = []
        if not sizes:
            sizes, due = [], time + linger
        sizes.append(size)
    if sizes:
        batches.append((due, sizes))
    return batches


def compressed_sizes(values, compress, count):
    batches = [values[begin : begin + count] for begin in range(0, len(values), count)]
    return [len(compress(b"".join(batch))) for batch in batches]


def frontier(runs):
    found, best = [], None
    for run in sorted(runs, key=lambda run: (run[1], -run[2])):
        if best is None or run[2] > best:
            found.append(run)
            best = run[2]
    return found


def choose(runs, max_latency, min_rate):
    good = [run for run in runs if run[1] <= max_latency and run[2] >= min_rate]
    return max(good, key=lambda run: run[2])[0] if good else None
