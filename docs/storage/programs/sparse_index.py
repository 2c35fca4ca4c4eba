from bisect import bisect_right

batches = [(offset, 10 * offset) for offset in range(0, 100, 5)]  # base offset, position in the file
index = batches[::4]  # an entry for every fourth batch


def look_up(wanted: int) -> tuple[int, int]:
    number = bisect_right(index, wanted, key=lambda entry: entry[0])
    _, start = index[number - 1]  # the last entry at or below the wanted offset
    read = [batch for batch in batches if batch[1] >= start and batch[0] <= wanted]
    return read[-1][1], len(read)


for wanted in (0, 19, 20, 77):
    position, read = look_up(wanted)
    print(f"offset {wanted}: the batch is at position {position}, after {read} headers of {len(batches)}")
