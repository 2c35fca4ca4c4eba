"""Rules for the English of HMB's texts, written as functions that find mistakes.

Each rule is one function. It takes the words of a text and yields the mistakes in them. The rules find only mistakes
with a fixed form, so a text without mistakes may still be hard to read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

MAX_WORDS = 35  # in one sentence
SENTENCE_END = re.compile(r"(?<=[.?!])[\"')\]`]*\s+(?=[A-Z`\"'(])|:\n|\n\s*(?:[-*]|\d+\.)\s+|\n\s*\n")
CODE = re.compile(r"``[^`]+``|`[^`]+`")
LAYOUT = re.compile(r"^(?: {4,}.*|\s*[|+].*|.* {3,}\S.*)$", re.M)  # lines of drawings, tables and byte layouts
BARE_BEGINNING = re.compile(r"(Who|Whoever|What|Whatever|One that|Those that|Those who|That which|Such(?! an? ))\b")
WORDS = {
    "under way": "in flight (requests), in progress (work)",
    "in hand": "fetched but not yet returned; buffered",
    "all the same": "anyway, still",
    "whoever": "name the client or thread",
    "in turns": "alternately",
    "by turns": "alternately",
    "there is none": "no ... exists",
    "there are none": "no ... exist",
    "at home": "owner, position, queue",
    "of ours": "an internal error",
    "told": "returned, sent, reported",
    "tells": "returns, reports, contains",
    "hears": "receives",
    "lest": "so that ... not",
    "for good": "permanently",
    "what there is": "name the thing",
    "as it came": "unchanged",
    "the like": "name the others",
    "mend": "repair, fix",
    "mended": "repaired, fixed",
    "mends": "repairs, fixes",
    "anew": "again",
    "who comes": "a client that connects",
    "who asks": "the requester",
    "stands in": "is stored in, is written in",
    "stand in": "are stored in, are written in",
    "lies in": "is stored in, is written in",
    "lie in": "are stored in, are written in",
}
TWO_SPACES = re.compile(r"(?<=[a-z0-9)`\"'][.?!])  +(?=[A-Z`\"'(])")
THESIS = re.compile(r"\bthesis,? (ch\.|\(ch\.|chapter \d|section)|\(thesis\)")
CITED = re.compile(r"\bthesis, chapter \d|\bthesis \(chapter \d")
WORD = re.compile(r"\b(" + "|".join(map(re.escape, WORDS)) + r")\b", re.I)


def mistakes(words: str, kind: str) -> Iterator[str]:
    """Yield a description of each mistake in a text."""
    prose = LAYOUT.sub("", words) if kind in ("docstring", "page", "test") else words
    prose = CODE.sub("`x`", prose)
    for rule in RULES:
        yield from rule(prose)


def long_sentences(words: str) -> Iterator[str]:
    for sentence in SENTENCE_END.split(words):
        if sentence and (count := len(sentence.split())) > MAX_WORDS:
            yield f"a sentence of {count} words: {' '.join(sentence.split()[:8])} ..."


def missing_subjects(words: str) -> Iterator[str]:
    for sentence in SENTENCE_END.split(words):
        if sentence and (found := BARE_BEGINNING.match(sentence.strip())) and not sentence.strip().endswith("?"):
            yield f"a sentence without a subject begins with {found[0]!r}: {' '.join(sentence.split()[:8])} ..."


def wrong_words(words: str) -> Iterator[str]:
    for found in WORD.finditer(words):
        yield f"{found[0]!r}: write {WORDS[found[0].lower()]}"


def two_spaces(words: str) -> Iterator[str]:
    for found in TWO_SPACES.finditer(words):
        yield f"two spaces after the end of a sentence: {words[max(0, found.start() - 20) : found.end() + 20]!r}"


def citations(words: str) -> Iterator[str]:
    """Find citations of the thesis in a wrong form.

    A correct citation contains the number and the title of the chapter: `(thesis, chapter 9, "Prototype")`. This
    function checks only the number.
    """
    for found in THESIS.finditer(words):
        if not CITED.match(words, found.start()):
            yield f"{found[0]!r}: write (thesis, chapter 9.2, with the chapter's title)"


RULES: tuple[Callable[[str], Iterator[str]], ...] = (
    long_sentences,
    missing_subjects,
    wrong_words,
    two_spaces,
    citations,
)
