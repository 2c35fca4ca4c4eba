"""Draws the files that a real broker has written to its data directory."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from drawing import Drawing, DrawingError, Tone

import hmb

WIDTH, ROW, LEFT, INDENT, MEANING = 540, 22, 12, 18, 306
# Each tuple contains a regular expression, a meaning and a color. The drawing gives this meaning and this color to each
# file or folder whose path matches the regular expression. If a path matches several regular expressions, the drawing
# uses the first matching tuple.
MEANINGS: list[tuple[str, str, Tone]] = [
    (r"weather-0", "the log of a partition", "amber"),
    (r"weather-1|__consumer_offsets-0", "another log, same files", "amber"),
    (r".*/0{20}\.log", "segment 0", "amber"),
    (r".*/\d{20}\.log", "active segment", "violet"),
    (r".*\.index", "its offset index", "plain"),
    (r".*\.timeindex", "its time index", "plain"),
    (r".*\.snapshot", "producers at this offset", "plain"),
    (r".*/leader-epoch-checkpoint", "first offsets of leader epochs", "plain"),
    (r".*/partition\.metadata", "topic id", "plain"),
    (r"\.kafka_cleanshutdown", "the broker stopped properly", "green"),
    (r"\.lock", "one broker in the directory", "plain"),
    (r"\.reserve", "space for a full disk", "plain"),
    (r"cleaner-offset-checkpoint", "where each compaction ended", "plain"),
    (r"hmb-manifest", "sizes and checksums of files", "plain"),
    (r"log-start-offset-checkpoint", "each log: log start offset", "plain"),
    (r"meta\.properties", "identity of the directory", "plain"),
    (r"recovery-point-offset-checkpoint", "each log: recovery point", "plain"),
    (r"security\.decoys", "random bytes for unknown users", "plain"),
    (r"topics\.json", "topics and their settings", "plain"),
    (r"producer-ids", "the next producer id", "plain"),
]


class Entry(NamedTuple):
    """A file or a folder of the data directory, with its meaning."""

    name: str
    depth: int
    meaning: str
    tone: Tone


def listed() -> list[Entry]:
    """Run a broker, stop it, and return an entry for each file and folder that the drawing shows.

    The list contains each folder of the data directory, followed by the files in this folder. After the last
    folder come the files that are directly in the data directory. Folders and files are sorted by name.
    """
    with TemporaryDirectory() as temporary:
        directory = Path(temporary)
        settings = {"log.segment.bytes": 300, "log.index.interval.bytes": 0}
        with hmb.Broker(directory, config=settings) as broker:
            broker.create_topic("weather", 2)
            for day in range(4):
                broker.produce("weather", f"day {2 * day}: rain", f"day {2 * day + 1}: fog")
            with hmb.Consumer(broker.bootstrap_servers, "weather", group="readers", until="end") as consumer:
                list(consumer)
        paths = sorted(directory.rglob("*"), key=lambda path: (not is_below_folder(path, directory), str(path)))
        return [entry(path.relative_to(directory), is_folder=path.is_dir()) for path in paths if is_shown(path)]


def is_below_folder(path: Path, directory: Path) -> bool:
    return path.is_dir() or path.parent != directory


def is_shown(path: Path) -> bool:
    """Return whether the drawing shows the file or folder `path`.

    The data directory contains the folders of three logs. The drawing shows all three folders. It shows the files
    in only one of them, the folder `weather-0`.
    """
    return path.is_dir() or path.parent.name not in ("weather-1", "__consumer_offsets-0")


def entry(path: Path, *, is_folder: bool) -> Entry:
    """Return a path's name and meaning. Raises DrawingError if no pattern in MEANINGS matches the path."""
    for pattern, words, tone in MEANINGS:
        if re.fullmatch(pattern, str(path)):
            return Entry(f"{path.name}/" if is_folder else path.name, len(path.parts), words, tone)
    raise DrawingError(f"MEANINGS contains no meaning for the file {path} of the data directory")


def files() -> Drawing:
    """Draw the data directory as a tree, with the meaning of each file."""
    entries = listed()
    words = "; ".join(f"{each.name}: {each.meaning}" for each in entries)
    drawing = Drawing(WIDTH, 40 + ROW * len(entries), f"The data directory of a broker that has stopped. {words}.")
    drawing.text(LEFT, 20, "data directory", anchor="start", strong=True)
    for number, each in enumerate(entries):
        x, y = LEFT + INDENT * each.depth, 32 + ROW * number
        drawing.line((x - INDENT + 6, y), (x - INDENT + 6, y + ROW / 2), (x - 3, y + ROW / 2))
        if each.tone != "plain":
            drawing.box(x - 2, y + 1, MEANING - x - 6, ROW - 2, tone=each.tone)
        drawing.text(x + 2, y + 16, each.name, anchor="start", size=13, strong=each.name.endswith("/"))
        drawing.text(MEANING, y + 16, each.meaning, anchor="start", size=13)
    return drawing
