Log = list[tuple[int, str, str | None]]  # offset, key, value


def compact(log: Log) -> Log:
    last = {key: offset for offset, key, _ in log}  # first pass: the last offset of each key
    return [record for record in log if last[record[1]] == record[0]]  # second pass: keep the last record of each key


before: Log = [(0, "ada", "Main"), (1, "bob", "Oak"), (2, "ada", "Elm"), (3, "bob", None), (4, "eve", "Low")]
for record in compact(before):
    print(record)
