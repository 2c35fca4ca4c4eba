"""Compares stream processors: Hailstorm and other programs count the same words.

Each stream processor reads one topic and counts the words in this topic. Some processors count each word exactly once,
even after a crash. Other processors may count a word twice after a crash (at least once). The result of a run is
accepted only if the processor has counted every record.

Read in this order:
1. `word_count`    counts words with each stream processor for Python; `WordCount.java` does this with Kafka Streams
2. `hailstorm`     the command `hmb bench hailstorm`, which runs all these stream processors alternately
"""
