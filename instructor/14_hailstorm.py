"""One correct answer to the second exercise of lab 14: a sliding window without subtraction."""


def greatest(count):
    def merge(a, b):
        return tuple(sorted(a + b, reverse=True)[:count])

    return (), merge


class SlidingWindow:
    # The window consists of old values and new values. For the new values, one merged state is enough. For each old
    # value, `old` contains this value merged with all old values that came after it. The oldest value is the last item,
    # so `old.pop()` removes it.
    def __init__(self, empty, merge, size):
        self.empty, self.merge, self.size = empty, merge, size
        self.old = []
        self.new, self.merged = [], empty

    def push(self, value):
        if len(self.old) + len(self.new) == self.size:
            if not self.old:
                self._make_old()
            self.old.pop()
        self.new.append(value)
        self.merged = self.merge(self.merged, value)

    def _make_old(self):
        state = self.empty
        for value in reversed(self.new):
            state = self.merge(value, state)
            self.old.append(state)
        self.new, self.merged = [], self.empty

    def result(self):
        return self.merge(self.old[-1], self.merged) if self.old else self.merged
