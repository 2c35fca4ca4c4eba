"""Dumps: the files of a log as text, for `hmb dump-log` and `hmb index-inspect`.

The commands `hmb dump-log` and `hmb index-inspect` only read the files of a segment. Unlike a broker, they
never repair or change these files. You can therefore use the commands on damaged files, and while a broker is
running.

`hmb dump-log` prints the same lines as Kafka's DumpLogSegments. For example, it prints an entry of an offset
index as `offset: 8080 position: 5000`. It has two more views: one shows the bytes of each field, and the other
one shows the sizes of segments, batches and records.

Read in this order:
- `log_files`       reads any file of a data directory, and shows it in one of three views
- `segment_files`   reads the files of a segment without changing them
- `segments`        shows the batches and records of a `.log` file
- `indexes`         shows indexes and producer snapshots, and compares each index with the log
- `state_files`     shows small text files, such as Kafka's checkpoints
- `entries`         prints each entry of a dump as a line or as JSON
- `findings`        collects contradictions between the files of a log
- `hexadecimal`     shows each field of a file with its bytes
- `tree`            shows the sizes of segments, batches and records
- `inspection`      compares an index with its log, and shows each step of a look-up in the index

Source: Kafka's `DumpLogSegments`.
"""
