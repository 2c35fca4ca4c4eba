"""Trending words: the paper's example topology, on a text that every machine has.

The paper counts hashtags from Twitter. This example counts the words in the documentation strings of Python's standard
library, one record for each line:

    docs -> split -> count (3 instances) -> topn (2 instances) -> trending

`split` makes words of a line. `count` keeps the running count of each word, and sends (word, count). Each `topn`
instance keeps the 10 words with the largest counts among those that it receives, and sends the whole list. The sink
merges the lists to the global top 10.

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
COMMON = {  # words that are too frequent to be interesting
    "also", "been", "being", "between", "both", "could", "does", "each", "from", "have", "here", "into", "more",
    "must", "only", "other", "should", "some", "such", "than", "that", "their", "them", "then", "there", "these",
    "they", "this", "those", "used", "using", "were", "what", "when", "where", "which", "will", "with", "would",
    "because",
}

Counted = tuple[str, int]


def words(line: str) -> Iterable[Counted]:
    """Return a pair (word, 1) for each word of at least four letters that is not too common."""
    return [(word, 1) for word in WORD.findall(line.lower()) if word not in COMMON]


def local_top(item: Counted, state: dict[str, int]) -> Iterable[Any]:
    """Return the top words of this instance as one list, the largest count first."""
    return [("top", tuple(top.result(state)))]


class GlobalTop:
    """The last bolt: merges the lists of the most frequent words that all instances of the bolt before it report."""

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
    """Do nothing: this example leaves no file behind."""


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
