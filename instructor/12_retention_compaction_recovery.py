"""One correct answer to the second exercise of lab 12: a cleaner with a small memory."""


def _size(records):
    return sum(len(key) + len(value) for _, key, value in records)


def dirty_ratio(records, checkpoint):
    dirty = [record for record in records if record[0] >= checkpoint]
    return _size(dirty) / _size(records) if records else 0.0


def dirtiest(logs, min_ratio):
    ratios = {name: dirty_ratio(*log) for name, log in logs.items()}
    enough = [name for name, ratio in ratios.items() if ratio >= min_ratio]
    return max(enough, key=ratios.__getitem__, default=None)


def clean(records, checkpoint, map_size):
    latest = {}  # the offset of the last record of each key in the mapped part of the log
    end = checkpoint
    for offset, key, _ in records:
        if offset < checkpoint:
            continue
        if key not in latest and len(latest) == map_size:
            break
        latest[key] = offset
        end = offset + 1
    return [record for record in records if latest.get(record[1], -1) <= record[0]], end
