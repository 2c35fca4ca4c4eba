"""Compares stream processors: Hailstorm and other programs count the same words.

Each stream processor reads one topic and counts the words in this topic. Some processors count each word exactly once,
even after a crash. Other processors may count a word twice after a crash (at least once). The result of a run is
accepted only if the processor has counted every record.

Read in this order:
1. `word_count`    the word count, written for each processor in Python; `WordCount.java` is written for Kafka Streams
2. `hailstorm`     the command `hmb bench hailstorm`, which runs all processors alternately
"""
