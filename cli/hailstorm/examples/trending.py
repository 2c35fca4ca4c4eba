"""Trending words: the example topology of the Hailstorm paper.

The input of the topology is the documentation in Python's standard library, which every user of HMB has.

In the Hailstorm paper, the topology counts hashtags from Twitter. This example counts the words in the docstrings of
Python's standard library. Each line of a docstring is one record. The records flow through these processors:
    docs -> split -> count (3 instances) -> topn (2 instances) -> trending

The bolt `split` divides a line into words. The bolt `count` counts how often each word has occurred so far, and sends
(word, count). Each of the two instances of `topn` receives some of the words. An instance keeps the 10 words with the
largest counts, and sends them as a list. The sink `trending` merges the lists of both instances into one list of the 10
most frequent words.

Source: Hailstorm, chapter 4, "Example Topology".
"""

from __future__ import annotations

import ast
import re
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hmb.hailstorm import Bolt, Sink, Spout, Sum, TopN, Topology

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOPIC, PARTITIONS = "python-docs", 2
N = 10
WORD = re.compile(r"[a-z]{4,}")
COMMON = {  # words that occur in every text, and are therefore not counted
    "also", "been", "being", "between", "both", "could", "does", "each", "from", "have", "here", "into", "more",
    "must", "only", "other", "should", "some", "such", "than", "that", "their", "them", "then", "there", "these",
    "they", "this", "those", "used", "using", "were", "what", "when", "where", "which", "will", "with", "would",
    "because",
}

Counted = tuple[str, int]


def words(line: str) -> Iterable[Counted]:
    """Return a tuple (word, 1) for each word in the line.

    Words with fewer than four letters are left out. The words in the set `COMMON`, for example "also", are left
    out as well.
    """
    return [(word, 1) for word in WORD.findall(line.lower()) if word not in COMMON]


def local_top(item: Counted, state: dict[str, int]) -> Iterable[Any]:
    """Return one tuple with the most frequent words in `state` and their counts, the largest count first."""
    return [("top", tuple(top.result(state)))]


class GlobalTop:
    """Merges the word lists from both instances of `topn`. The sink calls this object with each list."""

    def __init__(self) -> None:
        self.state: dict[str, int] = {}

    def __call__(self, item: tuple[str, tuple[Counted, ...]]) -> None:
        self.state = top.merge(self.state, dict(item[1]))


top = TopN(N)
trending = GlobalTop()
topology = Topology("trending")
topology.spout("docs", Spout(TOPIC))
topology.bolt("split", Bolt.stateless(words), after="docs", group=str)
topology.bolt("count", Bolt.keyed(Sum(), lambda pair: pair[0], lambda pair: pair[1]), after="split", parallelism=3)
topology.bolt("topn", Bolt.over(top, local_top), after="count", parallelism=2)
topology.sink("trending", Sink(trending), after="topn")


def prepare() -> None:
    """Do nothing, because this example writes no file that must be deleted before a new run."""


def records() -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, value) of each record: the name of a module and a line of its documentation."""
    library = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(library.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                yield from ((path.stem.encode(), line.encode()) for line in text.splitlines() if line.strip())


def lines(states: dict[str, Any]) -> list[str]:
    """Return the result as text: the top words and their counts."""
    return [f"{count:8,}  {word}" for word, count in top.result(states["topn"])]


def draw(states: dict[str, Any]) -> Figure:
    """Return a picture of the result: a bar for each of the top words."""
    from matplotlib.figure import Figure

    ranking = top.result(states["topn"])[::-1]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.barh([word for word, _ in ranking], [count for _, count in ranking], color="#3465a4")
    axes.set_title(f"The {N} most frequent words in the documentation of Python's library")
    axes.set_xlabel("occurrences")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
