"""Stream processors: the same word count with Hailstorm and with other processors.

Each processor reads one topic and counts its words. Some processors count each word exactly once, others at least once.
A run counts only if the processor has counted every record.

Read in this order:

1. `word_count`    the word count, written for each processor of Python; `WordCount.java` is the one of Kafka Streams
2. `hailstorm`     the command `hmb bench hailstorm`: all processors alternately
"""
