"""One correct answer to the second exercise of lab 9: partitions that fill batches."""


def place(records, partitions, batch_size, hash_of):
    places, sticky, placed = [], 0, 0
    for key, size in records:
        if key is not None:
            places.append(hash_of(key) % partitions)
            continue
        places.append(sticky)
        placed += size
        if placed >= batch_size:
            sticky, placed = (sticky + 1) % partitions, 0
    return places


def count_batches(records, places, batch_size):
    count, filled = 0, {}  # for each partition: the size of its last batch
    for (_, size), partition in zip(records, places, strict=True):
        if partition not in filled or filled[partition] + size > batch_size:
            count += 1
            filled[partition] = 0
        filled[partition] += size
    return count


def choose(waiting, number):
    tickets = [max(waiting) + 1 - count for count in waiting]
    number %= sum(tickets)
    for partition, count in enumerate(tickets):
        if number < count:
            return partition
        number -= count
    return None
