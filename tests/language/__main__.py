"""Lists the project's texts, draws a random sample of them, or prints the mistakes in them.

Usage: `python -m tests.language list|sample SEED N|check [PLACE ...] [--kinds docstring,comment,...]`.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter

from tests.language.rules import mistakes
from tests.language.texts import KINDS, Text, all_texts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.language", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    sample = commands.add_parser("sample", help="print N texts, drawn at random")
    sample.add_argument("seed", type=int)
    sample.add_argument("count", type=int)
    for command in (commands.add_parser("list"), sample, commands.add_parser("check")):
        command.add_argument("places", nargs="*", help="folders or files; the whole project by default")
        command.add_argument("--kinds", default=",".join(KINDS))
    arguments = parser.parse_args()
    texts = [text for text in all_texts(*arguments.places) if text.kind in arguments.kinds.split(",")]
    if arguments.command == "check":
        return _check(texts)
    if arguments.command == "sample":
        texts = random.Random(arguments.seed).sample(texts, min(arguments.count, len(texts)))
    for number, text in enumerate(texts, 1):
        print(f"--- {number} [{text.kind}] {text.place}\n    {text.code}\n{text.words}\n")
    print(", ".join(f"{count} {kind}" for kind, count in Counter(text.kind for text in texts).items()), file=sys.stderr)
    return 0


def _check(texts: list[Text]) -> int:
    found = [(text, mistake) for text in texts for mistake in mistakes(text.words, text.kind)]
    for text, mistake in found:
        print(f"{text.place} [{text.kind}] {mistake}")
    print(f"{len(found)} mistakes in {len(texts)} texts", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
