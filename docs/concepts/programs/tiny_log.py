class Log:
    def __init__(self) -> None:
        self.records: list[str] = []

    def append(self, record: str) -> int:
        self.records.append(record)
        return len(self.records) - 1  # the offset of the new record

    def read(self, offset: int) -> list[str]:
        return self.records[offset:]


log = Log()
for pizza in ("margherita", "funghi", "napoli"):
    print(pizza, "has offset", log.append(pizza))
print("from offset 1:", log.read(1))
print("again:        ", log.read(1))
