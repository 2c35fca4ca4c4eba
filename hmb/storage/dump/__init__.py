"""Dumps: the files of a log as text, for `hmb dump-log` and `hmb index-inspect`.

The commands `hmb dump-log` and `hmb index-inspect` read the files of a segment, but do not open the log as a broker
does. So the commands also work if files are damaged, and while a broker runs. They print the same lines as Kafka's
DumpLogSegments, for example `offset: 8080 position: 5000` for an entry of an offset index. Two more views show each
byte with its field, and the sizes of segments, batches and records.

Read in this order:
- `log_files`       the entries of any file of a data directory, in one of three views
- `segment_files`   reading a segment's files without changing them
- `segments`        batches and records of a `.log` file
- `indexes`         entries of indexes and producer snapshots, compared with the log
- `state_files`     Kafka's text files
- `entries`         the entries of a dump, as lines and as JSON
- `findings`        contradictions between the files
- `hexadecimal`     each byte with its field
- `tree`            segments, batches and records with their sizes
- `inspection`      a comparison of an index with its log, and a look-up, step by step

Source: Kafka's `DumpLogSegments`.
"""
