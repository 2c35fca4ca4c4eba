"""One correct answer to lab 10: a range assignor and a sticky assignor."""


def assign_range(partitions, consumers):
    each, rest = divmod(partitions, len(consumers))
    result, begin = {}, 0
    for number, consumer in enumerate(sorted(consumers)):
        end = begin + each + (number < rest)
        result[consumer] = list(range(begin, end))
        begin = end
    return result


def assign_sticky(previous, partitions, consumers):
    owned = {name: previous.get(name, []) for name in sorted(consumers)}
    each, rest = divmod(partitions, len(owned))
    # If the partitions cannot be divided evenly, some consumers get one partition more than others. These consumers
    # come first in `by_size`: they already own the most partitions, so fewer partitions get a new owner.
    by_size = sorted(owned, key=lambda name: (-len(owned[name]), name))
    quota = {name: each + (number < rest) for number, name in enumerate(by_size)}
    kept = {name: sorted(owned[name])[: quota[name]] for name in owned}
    free = sorted(set(range(partitions)) - {number for numbers in kept.values() for number in numbers})
    for name, numbers in kept.items():
        while len(numbers) < quota[name]:
            numbers.append(free.pop(0))
    return {name: sorted(numbers) for name, numbers in kept.items()}
