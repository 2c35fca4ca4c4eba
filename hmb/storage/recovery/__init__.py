"""Recovery: a start finds out what a log contains after a stop, a kill, a power cut or damage.

A kill of the process loses no written bytes, because the kernel has them. A power cut loses bytes that were not synced,
in any order. A disk may change a bit at any time. The start has to tell these cases apart from the files alone::

                         recovery point               end of the file
                               |                             |
    [ batch ][ batch ][ ????? ][ batch ][ batch ][ ????? ][ batch ]
                      damage: an empty           a power cut: the log ends at the
                      batch replaces it          hole, later batches go to a .cut file

Bytes before the recovery point have been on disk, so damage among them came later. The intact batches after it are
served, and an empty batch takes the place of the damaged one, so that readers get past it. Bytes from the recovery
point on may never have been on disk as a whole. Later batches may depend on lost ones, so the log ends there.

The start can rebuild the indexes and the state of the producers from the batches.

Read in this order:

- `scanning`   the batches of one segment after a crash, up to the first damaged one
- `checking`   one batch: is it intact? The search for the next intact batch
- `clean_stop` where one segment ends after a proper stop
- `loading`    all segments of a log at a start, and the state of its producers
- `repair`     replacements for damaged batches, at a start and while readers use the log
- `tails`      bytes after the last whole batch
- `read_checks`  readers that cannot get past damage

Source: Kafka 0.7 design, "Log"; Kafka's `LogLoader`, `LogSegment.recover`.
"""
