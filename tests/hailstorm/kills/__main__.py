"""Runs a topology several times with random kills. The docstring of `tests.hailstorm.kills` describes each run."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.hailstorm.kills.runs import Figures, quiet, run


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a topology with random kills, and compare it with a batch job.")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first run (default: 0)")
    parser.add_argument(
        "--only", choices=["threads", "processes"], help="the kind of all processors (default: the runs alternate)"
    )
    arguments = parser.parse_args()
    done: list[Figures] = []
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        processes = seed % 2 == 1 if arguments.only is None else arguments.only == "processes"
        with tempfile.TemporaryDirectory(prefix="hailstorm-kills-") as directory, quiet():
            figures = run(seed, Path(directory), processes=processes)
        done.append(figures)
        kind = "processes" if processes else "threads"
        print(
            f"run {seed}, {kind}: killed {', '.join(figures.kills)}; {figures.epochs} epochs, "
            f"{figures.snapshots} snapshots, {figures.written_again} outputs replayed, {figures.seconds:.1f} s",
            flush=True,
        )
    victims = Counter(victim for figures in done for victim in figures.kills)
    print(f"{len(done)} runs, each equal to the result of a batch job: {sum(victims.values())} kills ({dict(victims)})")
    print(
        f"{sum(it.snapshots for it in done)} snapshots, {sum(it.written_again for it in done)} outputs replayed, "
        f"{sum(it.epochs for it in done)} epochs, median {statistics.median(it.seconds for it in done):.1f} s a run"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
