"""One correct answer to the second exercise of lab 13: a transaction coordinator."""


class Fenced(Exception):
    pass


class Ended(Exception):
    pass


class Coordinator:
    def __init__(self, journal, write_marker):
        self.journal, self.write_marker = journal, write_marker
        self.epochs, self.partitions = {}, {}  # the newest epoch of each name, and the partitions of its transaction
        self.outcomes = {}  # the outcome of each name's newest transaction, if this transaction has ended
        decided = {}  # the outcome of each transaction that may lack markers
        for kind, name, value in journal:
            if kind == "begin":
                self.epochs[name], self.partitions[name] = value, []
                self.outcomes.pop(name, None)
            elif kind == "add":
                self.partitions[name].append(value)
            elif kind == "decide":
                decided[name] = self.outcomes[name] = value
            else:
                del decided[name]
                self.partitions[name] = []
        for name, outcome in decided.items():
            self._complete(name, outcome)

    def begin(self, name):
        if self.partitions.get(name):
            self.end(name, self.epochs[name], "abort")
        epoch = self.epochs.get(name, -1) + 1
        self.journal.append(["begin", name, epoch])
        self.epochs[name], self.partitions[name] = epoch, []
        self.outcomes.pop(name, None)
        return epoch

    def add(self, name, epoch, partition):
        self._check(name, epoch)
        if name in self.outcomes:
            raise Ended(f"the transaction {epoch} of {name} has ended")
        if partition not in self.partitions[name]:
            self.journal.append(["add", name, partition])
            self.partitions[name].append(partition)

    def end(self, name, epoch, outcome):
        self._check(name, epoch)
        decided = self.outcomes.get(name, outcome)
        if decided != outcome:
            raise Ended(f"the transaction {epoch} of {name} has ended with {decided}")
        if name in self.outcomes and not self.partitions[name]:
            return  # The markers are written: this call repeats an earlier one.
        self.journal.append(["decide", name, outcome])
        self.outcomes[name] = outcome
        self._complete(name, outcome)

    def _complete(self, name, outcome):
        for partition in self.partitions[name]:
            self.write_marker(partition, name, self.epochs[name], outcome)
        self.journal.append(["complete", name, outcome])
        self.partitions[name] = []

    def _check(self, name, epoch):
        if epoch != self.epochs.get(name):
            raise Fenced(f"{name} has the epoch {self.epochs.get(name)}, and not {epoch}")
