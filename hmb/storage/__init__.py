"""Storage: the log of each partition on disk, in Kafka's formats.

A broker stores records in logs. A partition has one log: a sequence of record batches that grows at its end only. The
broker writes a batch as the producer has sent it, and sends it to consumers as it is on disk. So an append is one write
and a fetch is one `sendfile`, whatever the records contain.

A log is a directory of segments, and a segment is a few files with one name, the offset of its first record::

    data directory                       LogManager      log_manager.py
      events-0/                          Log             log.py
        00000000000000000000.log         Segment         segment.py
        00000000000000000000.index       OffsetIndex     offset_index.py
        00000000000000000000.timeindex   TimeIndex       time_index.py
        00000000000000008021.log         the active segment: appends go to its end
        00000000000000008021.index
        00000000000000008021.timeindex
        00000000000000008021.snapshot    ProducerState   producer_state.py
      topics.json, checkpoints, ...                      state/

Example: a consumer asks for offset 8,100. The log finds segment 8021, the last one whose name is not greater. The
offset index names a batch a little before offset 8,100 and its position. A short scan from there finds the batch with
the offset, and the kernel sends the bytes from this position on.

Three rules keep the records safe:

- The log assigns each offset once. No start lowers the end of a log below its recovery point.
- A record that is acknowledged after a sync is on disk. A sync that has failed is never tried again.
- The broker reports the position of damaged bytes that it finds. It still serves the intact batches after them.

Read in this order:

- `segment`            one segment: append, read
- `offset_index`       offset -> position; `time_index`: timestamp -> offset
- `log`                append, roll, read; `log_segments`: the list of its segments
- `log_reading`        which bytes a fetch gets
- `group_commit`       one sync for many producers
- `log_manager`        all logs of a data directory
- `recovery/`          the start after a kill, a power cut or damage

The rest can be skipped in a first reading:

- `config`             the settings of a log
- `batches/`           checks and changes of batches before the append (`validation` is a step of the tour of a Produce)
- `producer_state`     idempotent producers and open transactions; `transaction_index`: aborted transactions
- `cleanup`            deletion and replacement of segments; `retention`: which segments are old enough
- `compaction/`        the last record of each key
- `state/`             small files of the data directory, its lock and its manifest
- `files/`             open files, syncs, a reserve for a full disk
- `clock`              the functions from which a broker reads the time
- `watchers`           fetches that wait for new records
- `isolation`          errors of one log that must not stop the work on the others
- `dump/`              the files as text, for `hmb dump-log` and `hmb index-inspect`

Source: the thesis, chapters 6.2, "Log", and 9.5; Kafka 0.7 design; Kafka's `storage` module.
"""
