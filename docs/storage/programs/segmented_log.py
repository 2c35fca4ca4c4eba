from bisect import bisect_right

FULL = 3  # records


class Log:
    def __init__(self) -> None:
        self.segments: list[tuple[int, list[str]]] = [(0, [])]  # base offset, records

    def append(self, record: str) -> int:
        base, records = self.segments[-1]
        if len(records) == FULL:  # roll: start a new segment
            base, records = base + FULL, []
            self.segments.append((base, records))
        records.append(record)
        return base + len(records) - 1

    def read(self, offset: int) -> str:
        number = bisect_right(self.segments, offset, key=lambda segment: segment[0]) - 1
        base, records = self.segments[number]
        return records[offset - base]


log = Log()
print("offsets:", [log.append(f"day {number}") for number in range(8)])
print("segments:", [base for base, _ in log.segments])
print("offset 4:", log.read(4))
