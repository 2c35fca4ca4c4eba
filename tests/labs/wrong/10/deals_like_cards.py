"""A wrong answer to lab 10: the partitions that `assign_range` gives to a consumer are not neighbors."""


def assign_range(partitions, consumers):
    names = sorted(consumers)
    return {name: list(range(number, partitions, len(names))) for number, name in enumerate(names)}


def assign_sticky(previous, partitions, consumers):
    owned = {name: [each for each in previous.get(name, []) if each < partitions] for name in sorted(consumers)}
    each, rest = divmod(partitions, len(owned))
    # The consumers that own the most partitions get the larger quotas.
    by_size = sorted(owned, key=lambda name: (-len(owned[name]), name))
    quota = {name: each + (number < rest) for number, name in enumerate(by_size)}
    kept = {name: sorted(owned[name])[: quota[name]] for name in owned}
    free = sorted(set(range(partitions)) - {number for numbers in kept.values() for number in numbers})
    for name, numbers in kept.items():
        while len(numbers) < quota[name]:
            numbers.append(free.pop(0))
    return {name: sorted(numbers) for name, numbers in kept.items()}
