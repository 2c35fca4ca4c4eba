"""One correct answer to lab 15: micro-batches with a checkpoint."""

import json
import os
from pathlib import Path


def write_json(path, content):
    """Write `content` to a file. A crash leaves either the whole old content or the whole new content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    with temporary.open("w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def numbers(folder):
    """Return the numbers in the names of the JSON files in a folder, in ascending order."""
    return sorted(int(path.stem) for path in folder.glob("*.json"))


def plan(folder, end, max_records):
    offsets, commits = Path(folder) / "offsets", numbers(Path(folder) / "commits")
    planned = numbers(offsets)
    if planned and planned[-1] not in commits:
        begin, last = json.loads((offsets / f"{planned[-1]}.json").read_text())
        return planned[-1], begin, last
    number, begin = 0, 0
    if planned:
        number, begin = planned[-1] + 1, json.loads((offsets / f"{planned[-1]}.json").read_text())[1]
    if begin >= end:
        return None
    last = min(end, begin + max_records)
    write_json(offsets / f"{number}.json", [begin, last])
    return number, begin, last


def commit(folder, number):
    write_json(Path(folder) / "commits" / f"{number}.json", True)


def write_output(folder, number, rows):
    write_json(Path(folder) / "output" / f"{number}.json", rows)


def read_output(folder):
    output = Path(folder) / "output"
    return [row for number in numbers(output) for row in json.loads((output / f"{number}.json").read_text())]


def run(folder, source, transform, max_records):
    while batch := plan(folder, source.end(), max_records):
        number, begin, end = batch
        write_output(folder, number, [transform(record) for record in source.read(begin, end)])
        commit(folder, number)
