"""Prints how many comparisons found equal responses, and the reason of each difference."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import astuple
from fnmatch import fnmatchcase
from typing import Any

from hmb.bench import peers
from hmb.protocol.messages import api_name

from .comparing import Difference, differences
from .comparisons import COMPARISONS
from .running import Result, Verdict, no_longer_needed, run_all

COLUMN = 58


def main() -> int:
    parser = argparse.ArgumentParser(description="The same bytes to HMB and to Apache Kafka 4.3.0.")
    help_of_only = "run only the comparisons with this name, which may contain *, and print both responses side by side"
    parser.add_argument("--only", metavar="NAME", help=help_of_only)
    options = parser.parse_args()
    comparisons = [each for each in COMPARISONS if options.only is None or fnmatchcase(each.name, options.only)]
    if not comparisons:
        first, last = COMPARISONS[0].name, COMPARISONS[-1].name
        parser.error(f"no comparison has the name {options.only}; two of the names are {first} and {last}")
    try:
        results, _ = run_all(comparisons)
    except peers.PeerUnavailable as missing:
        parser.exit(2, f"{missing}\n")
    if options.only is not None:
        for result in results:
            print_answers(result)
        return 0
    print_counts(results)
    print_reasons(results)
    return print_failures(results)


def print_counts(results: Sequence[Result]) -> None:
    counts: dict[str, Counter[Verdict]] = defaultdict(Counter)
    for result in results:
        counts[api_name(result.comparison.case.key())][result.verdict] += 1
        counts["all"][result.verdict] += 1
    print(f"{'':28}{'all':>8}", *(f"{verdict:>21}" for verdict in Verdict), sep="")
    for name, of_api in counts.items():
        if name != "all":
            print_line(name, of_api)
    print_line("all", counts["all"])
    slowest = max(results, key=lambda result: result.seconds)
    seconds = sum(result.seconds for result in results)
    print(f"{seconds:.0f} s, of which {slowest.seconds:.1f} s for {slowest.comparison.name}")


def print_line(name: str, counts: Counter[Verdict]) -> None:
    print(f"{name:28}{counts.total():>8}", *(f"{counts[verdict] or '':>21}" for verdict in Verdict), sep="")


def print_reasons(results: Sequence[Result]) -> None:
    explained: dict[str, set[str]] = defaultdict(set)
    for result in results:
        for reason in result.reasons:
            explained[reason.why].add(result.comparison.name)
    print("Why responses differ:")
    for why, names in explained.items():
        cases = sorted({name.rpartition("/")[0] for name in names})
        print(f"{len(names):5} {why}")
        print(textwrap.fill(", ".join(cases), 118, initial_indent=" " * 6, subsequent_indent=" " * 6))


def print_failures(results: Sequence[Result]) -> int:
    """Print each difference once, with the versions in which it occurs. Return the number of differences."""
    versions: dict[tuple[str, str], list[int]] = defaultdict(list)
    for result in results:
        for difference in result.unexplained:
            comparison = result.comparison
            general = [each.replace(comparison.unique_name, "<name>") for each in astuple(difference)]
            versions[comparison.name.rpartition("/")[0], str(Difference(*general))].append(comparison.version)
    for (name, shown), of_versions in versions.items():
        print(f"UNEXPLAINED {name}/v{','.join(map(str, of_versions))} {shown}")
    stale = no_longer_needed(results)
    for explanation in stale:
        print(f"NOT NEEDED any more: {explanation}")
    return int(bool(versions or stale))


def print_answers(result: Result) -> None:
    print(f"\n{result.comparison.name}: {result.verdict}")
    for number, (ours, kafka) in enumerate(result.answers, 1):
        print(f"  answer {number:<{COLUMN - 2}} {'HMB':{COLUMN}} Kafka 4.3.0")
        different = {difference.path for difference in differences(ours, kafka)}
        left, right = leaves(ours), leaves(kafka)
        for path in {**left, **right}:
            mark = "!" if path in different else " "
            print(f"{mark} {path:{COLUMN}} {left.get(path, ''):{COLUMN}} {right.get(path, '')}")


def leaves(tree: Any, path: str = "") -> dict[str, str]:
    """Flatten a tree to a dictionary: the path of each leaf -> its value."""
    if not isinstance(tree, dict):
        return {path: str(tree)}
    return {
        deeper: value
        for name, branch in tree.items()
        for deeper, value in leaves(branch, f"{path}.{name}".lstrip(".")).items()
    }


if __name__ == "__main__":
    sys.exit(main())
