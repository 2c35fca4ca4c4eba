"""Tests for the second exercise of lab 15.

In each test, `answer` is the student's module `second.py`, `rng` generates random test cases, and `tmp_path` is an
empty folder.
"""

from collections import Counter

from hmb.labs.crashes import crashing

WORDS = ["hail", "rain", "snow"]


class Source:
    """A source of words, like a topic with one partition. Each word can be read several times."""

    def __init__(self, words):
        self.words, self.reads = list(words), []

    def end(self):
        return len(self.words)

    def read(self, begin, end):
        assert 0 <= begin < end <= len(self.words), f"the source has {len(self.words)} words: read({begin}, {end})"
        self.reads.append((begin, end))
        return self.words[begin:end]


class Sink:
    """A sink outside of the pipeline, like a database.

    The dictionary `batches` maps each batch number to the batch's rows.
    """

    def __init__(self):
        self.batches = {}

    def write(self, number, rows):
        last = len(self.batches) - 1
        assert number in (last, last + 1), f"sink.write gets batch {number}, but the newest batch is {last}"
        old = self.batches.get(number, dict(rows))
        assert dict(rows) == old, f"batch {number} is written again with the rows {dict(rows)}; before, it had {old}"
        self.batches[number] = dict(rows)

    @property
    def counts(self):
        """The newest count of each word."""
        return {word: count for number in sorted(self.batches) for word, count in self.batches[number].items()}


def batches_of(words, size):
    """Return a dictionary that maps each batch number to the batch's rows.

    The rows are also a dictionary. It maps each word of the batch to its count in this batch and all earlier batches.

    For example, the words are hail, hail, rain, hail, and a batch has 2 words. Batch 0 has the rows {hail: 2}.
    Batch 1 has the rows {rain: 1, hail: 3}.
    """
    found = []
    for begin in range(0, len(words), size):
        counts = Counter(words[: begin + size])
        found.append({word: counts[word] for word in words[begin : begin + size]})
    return dict(enumerate(found))


def test_rows(answer, tmp_path, rng):
    """The rows of a batch contain the new total count of each word that occurs in the batch."""
    for number, words in enumerate((["hail"], ["hail", "hail", "rain", "hail"], rng.choices(WORDS, k=23))):
        folder, sink = tmp_path / str(number), Sink()
        folder.mkdir()
        answer.run(folder, Source(words), sink, 2)
        expected = batches_of(words, 2)
        case = f"the words {words}, max_records 2"
        assert sink.batches == expected, f"{case}: the batches are {sink.batches} (right: {expected})"


def test_read_counts(answer, tmp_path, rng):
    """`read_counts` returns how often each word occurs in all complete batches.

    Before the first batch is complete, it returns an empty dictionary.
    """
    found = answer.read_counts(tmp_path)
    assert found == {}, f"an empty folder: read_counts returns {found!r} (right: {{}})"
    words = rng.choices(WORDS, k=17)
    answer.run(tmp_path, Source(words), Sink(), 5)
    found, expected = answer.read_counts(tmp_path), dict(Counter(words))
    assert found == expected, f"after run with {words}: read_counts returns {found!r} (right: {expected})"


def test_more_words(answer, tmp_path):
    """A second call of `run` continues at the first new word. If no new word exists, it writes nothing."""
    source, sink = Source(["hail", "rain", "hail"]), Sink()
    answer.run(tmp_path, source, sink, 10)
    answer.run(tmp_path, source, sink, 10)
    assert len(sink.batches) == 1, f"run twice without new words: the batches are {sink.batches}"
    source.words += ["hail", "snow"]
    source.reads.clear()
    answer.run(tmp_path, source, sink, 10)
    found = sink.batches.get(1)
    assert found == {"hail": 3, "snow": 1}, f"hail, rain, hail; then hail, snow: batch 1 is {found}"
    assert source.reads == [(3, 5)], f"two new words after three old ones: run reads the ranges {source.reads}"


def test_few_files(answer, tmp_path):
    """The number of files in the folder does not grow with the number of batches."""
    answer.run(tmp_path, Source(WORDS * 10), Sink(), 1)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) <= 10, f"after 30 batches, the folder has {len(files)} files; remove what is no longer needed"


def test_crashes(answer, tmp_path):
    """The pipeline can crash at any line. The next call of `run` completes the work.

    If this call writes a batch for the second time, the batch has the same rows as before. At the end, all counts
    are right.
    """
    words = ["hail", "rain", "hail"]
    for line in range(2000):
        folder, source, sink = tmp_path / str(line), Source(words), Sink()
        folder.mkdir()
        case = f"the words {words}, max_records 2, a crash before step {line + 1}, 'rain' arrives, and a second run"
        has_crashed = crashing(
            answer, line, lambda source=source, folder=folder, sink=sink: answer.run(folder, source, sink, 2)
        )
        source.words += ["rain"]
        try:
            answer.run(folder, source, sink, 2)
            stored = dict(answer.read_counts(folder))
        except Exception as error:  # The student's code may raise any exception.
            raise AssertionError(f"{case}: {type(error).__name__}: {error}") from error
        expected = dict(Counter([*words, "rain"]))
        assert sink.counts == expected, f"{case}: the sink has {sink.counts} (right: {expected})"
        assert stored == expected, f"{case}: read_counts returns {stored} (right: {expected})"
        if not has_crashed:
            return
    raise AssertionError(
        "the function `run` executes more than 2,000 lines of code for three words; does `run` wait in a loop?"
    )
