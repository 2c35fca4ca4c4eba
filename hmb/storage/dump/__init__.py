"""Dumps: the files of a log as text, for `hmb dump-log` and `hmb index-inspect`.

The tools read a segment's files without opening the log, so they work on damaged files, and while a broker runs. The
lines are those of Kafka's DumpLogSegments. Two more views show each byte with its field, and the sizes of segments,
batches and records.

Read in this order:

- `log_files`       the entries of any file of a data directory, in one of three views
- `segment_files`   reading a segment's files from outside
- `segments`        batches and records of a `.log` file
- `indexes`         entries of indexes and producer snapshots, compared with the log
- `state_files`     Kafka's text files
- `entries`         how an entry is written as a line and as JSON
- `findings`        contradictions between the files
- `hexadecimal`     each byte with its field
- `tree`            segments, batches and records with their sizes
- `inspection`      an index and a look-up in it, step by step

Source: Kafka's `DumpLogSegments`.
"""
