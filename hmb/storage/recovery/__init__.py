"""Recovery: when the broker starts, it finds out which records a log contains after a kill, a power cut or damage.

If the broker's process is killed, no written bytes are lost, because the kernel has them. After a power cut,
bytes that were not synced may be missing. A defective disk may change a bit at any time. When the broker finds
damage at its start, the position of the damage shows the cause. The *recovery point* separates synced bytes
from bytes that may not be synced. In this drawing, `?????` stands for damaged bytes:
                         recovery point               end of the file
                               |                             |
    [ batch ][ batch ][ ????? ][ batch ][ batch ][ ????? ][ batch ]
                      damage: restored, or an    a power cut: the log ends here,
                      empty batch replaces it    and later batches go to a .cut file

All bytes before the recovery point have been on disk. If these bytes are damaged, the disk has changed them
later. The broker first tries to restore the damaged batch. This works if only the offset, the length or the
format version of the batch is damaged. The broker can find the right values of these fields in the batches
before and after. It can also restore a transaction marker in which only one bit is wrong. If the restore
fails, the records of the batch are lost, and the broker replaces the batch by an empty batch. In both cases,
readers can continue with the next batch.

Bytes after the recovery point may never have been on disk. If these bytes are damaged, the log ends at the damage,
because later records may depend on the lost records.

For example, the recovery point is 220: all records below offset 220 were on disk. If the batch at offset 210 is
damaged, the broker restores it or replaces it by an empty batch. If the batch at offset 230 is damaged, the log ends at
offset 230.

If the files of a closed segment are unchanged, the broker does not check all its batches at the start. The
broker finds damage in such a segment later, when clients read the segment (`read_checks`).

During recovery, the broker rebuilds the indexes and the state of the producers from the batches.

Read in this order:
- `scanning`     a check of all batches of one segment after a crash, up to the first damaged batch
- `checking`     a check of one batch, and the search for the next intact batch
- `clean_stop`   where one segment ends after a proper stop
- `loading`      all segments of a log when the broker starts, and the state of the log's producers
- `repair`       replacements for damaged batches, when the broker starts and while readers use the log
- `tails`        bytes after the last whole batch
- `read_checks`  how a running broker notices that readers cannot read past damage
- `index_rebuild`  the rebuild of damaged indexes while clients read the segment

Source: Kafka 0.7 design, "Log"; Kafka's `LogLoader`, `LogSegment.recover`.
"""
