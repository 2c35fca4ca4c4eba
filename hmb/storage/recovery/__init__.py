"""Recovery: when the broker starts, it finds out which records a log contains after a kill, a power cut or damage.

If only the broker's process is killed, the kernel still writes all appended records to the disk. A power cut
can destroy records that are not synced. A defective disk can change a bit at any time.

The position of damaged bytes (`?????`) shows the probable cause. The broker has synced all bytes before the
*recovery point*. After this point, a power cut can leave damaged bytes:
                         recovery point                       end of the file
                               |                                   |
    [ batch ][ batch ][ ????? ][ batch ][ batch ][ ????? ][ batch ]
                      a disk fault: the broker   a power cut: the log ends here, and the
                      corrects this batch, or    broker copies the rest to a .cut file
                      puts an empty batch here

If a batch before the recovery point is damaged, the broker first tries to restore it. The broker can correct a
wrong offset, length or format version, because the batches before and after show the right values. It can also
restore a transaction marker in which only one bit is wrong.

If the broker cannot restore a damaged batch, it replaces the batch by an empty batch. The records of the
damaged batch are lost, but readers can continue with the next batch.

In the last segment, bytes after the recovery point may be unsynced, so a power cut can destroy them. If a batch
there is damaged, the log ends before this batch, because later records may depend on the lost records.

For example, the recovery point is 220: all records below offset 220 were on disk. If the batch at offset 210 is
damaged, the broker restores it or replaces it by an empty batch. If the batch at offset 230 is damaged, the log ends at
offset 230.

When the broker starts, it reads only a few batch headers of a closed segment whose files are unchanged. The
broker usually finds a damaged batch of this segment later, when clients read the batch (`read_checks`).

During recovery, the broker rebuilds the indexes and the state of the producers from the batches.

Read in this order:
- `scanning`     a check of all batches of one segment after a crash, up to the first damaged batch
- `checking`     a check of one batch, and the search for the next intact batch
- `clean_stop`   where one segment ends after a proper stop
- `loading`      all segments of a log when the broker starts, and the state of the log's producers
- `repair`       replacements for damaged batches, when the broker starts and while readers use the log
- `tails`        bytes after the last whole batch
- `read_checks`  a check of batches that clients fetch repeatedly
- `index_rebuild`  the rebuild of damaged indexes while clients read the segment

Source: Kafka 0.7 design, "Log"; Kafka's `LogLoader`, `LogSegment.recover`.
"""
