"""Storage: the log of each partition on disk, in Kafka's formats.

A broker stores records in logs. A partition has one log. A log is a sequence of record batches. The broker adds new
batches only at the end of the log. An append is one write to a file. A fetch is one call of `sendfile`, with which the
kernel sends bytes of a file to the network.

With the default settings, the broker does not decode the records of a batch. Before the append, it changes only two
fields in the first 16 bytes of the batch: the base offset and the leader epoch. Later, it sends the same bytes from the
disk to consumers. (For another `compression.type` or for LogAppendTime, the broker changes more: see
batches/preparation.py.)

A log is a directory of segments. A segment is a few files that share one name: the offset of the segment's first
record. This drawing shows the files. The columns on the right name the class and the module for each file:
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

Example: a consumer asks for offset 8,100. The last segment begins at offset 8,021, so the log chooses this segment. The
segment's offset index contains the position of a batch a little before offset 8,100. The broker scans the file from
this position until it finds the batch that contains offset 8,100. The kernel then sends the bytes of the file from this
batch on.

Three rules keep the records safe:
- The log never uses the offset of a synced record again for another record. All records below the *recovery point*, an
  offset, are synced. When the broker starts, it may cut damaged batches off the end of a log, but it never cuts off
  records below the recovery point.
- A record is safely on disk only after a sync of its log. If a sync fails, the kernel may have dropped the bytes that
  it could not write. A second sync would then succeed, although these bytes are lost. So the broker does not sync this
  log again, and refuses further appends to it.
- When the broker finds damaged bytes, it logs their position. Clients can usually still read the intact batches after
  the damage. But if a broker starts after a crash and finds damage above the recovery point, the log ends there. If
  intact batches follow, the broker copies all bytes after the new end to a `.cut` file.

Read the modules of this folder in this order:
- `segment`            one part of a log: appends batches, and finds the batch that contains an offset
- `offset_index`       maps an offset to a position in the file of a segment
- `time_index`         maps a timestamp to an offset
- `log`                the log of one partition: appends and reads, and starts a new segment when the last one is full
- `log_segments`       the list of a log's segments
- `log_reading`        finds the bytes of a log that a fetch returns
- `group_commit`       one sync for all producers that wait for the disk at the same time
- `log_manager`        all logs of a data directory
- `recovery/`          checks and repairs logs after a kill, a power cut or damage

On a first reading, you can skip these modules:
- `config`             the settings of a log
- `batches/`           checks and changes batches before the append; docs/tour/produce.md explains `validation`
- `producer_state`     stores the idempotent producers and the open transactions of a log
- `transaction_index`  stores the aborted transactions of a segment
- `log_producers`      the state of a log's producers, for threads that do not append batches
- `cleanup/`           deletes and replaces segments
- `compaction/`        removes a record if a later record has the same key
- `state/`             small files of the data directory, for example its lock and its manifest
- `files/`             opens and syncs files, and reserves disk space for use when the disk is full
- `clock`              the functions from which a broker reads the time
- `watchers`           lets fetches wait for new records
- `failure_isolation`  ensures that an error in one log does not stop the work on other logs
- `events`             stores the last events of a broker, for example deleted segments
- `dump/`              shows the files as text, for `hmb dump-log` and `hmb index-inspect`

Source: Juchli and Wolf's thesis, chapter 6.2 ("Log") and chapter 9.5; Kafka 0.7 design; Kafka's `storage`
module.
"""
