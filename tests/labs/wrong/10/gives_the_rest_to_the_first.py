"""A wrong answer to lab 10: the first consumers get the larger quotas, not those that own the most partitions."""


def assign_range(partitions, consumers):
    each, rest = divmod(partitions, len(consumers))
    result, begin = {}, 0
    for number, consumer in enumerate(sorted(consumers)):
        end = begin + each + (number < rest)
        result[consumer] = list(range(begin, end))
        begin = end
    return result


def assign_sticky(previous, partitions, consumers):
    owned = {name: [each for each in previous.get(name, []) if each < partitions] for name in sorted(consumers)}
    each, rest = divmod(partitions, len(owned))
    # The consumers that own the most partitions get the larger quotas.
    by_size = sorted(owned)
    quota = {name: each + (number < rest) for number, name in enumerate(by_size)}
    kept = {name: sorted(owned[name])[: quota[name]] for name in owned}
    free = sorted(set(range(partitions)) - {number for numbers in kept.values() for number in numbers})
    for name, numbers in kept.items():
        while len(numbers) < quota[name]:
            numbers.append(free.pop(0))
    return {name: sorted(numbers) for name, numbers in kept.items()}
