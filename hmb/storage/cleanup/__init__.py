"""The cleanup of a log: it deletes old segments, and it replaces segments that were compacted or repaired.

An append changes only the end of a log. The modules of this folder delete and replace segments. For example, a
log has three segments, which begin at the offsets 0, 100 and 200. All records of the first segment are older
than `retention.ms`. The cleanup removes this segment from the log, and 100 becomes the log start offset.

The folder `recovery` contains the code that cuts damaged bytes off the end of a log when the broker starts.

A cleanup holds the log's cleanup lock, so only one cleanup of a log runs at a time. Appends and reads continue during a
cleanup. A thread may still be reading a segment that the cleanup deletes or replaces. The cleanup therefore renames the
files of this segment first, and removes them only after `file.delete.delay.ms`. A DeleteRecords request only moves the
log start offset. It needs the log's lock, but not the cleanup lock.

Read in this order:
- `deletion`      deletes the oldest segments, and moves the log start offset (DeleteRecords)
- `retention`     which of the oldest segments may be deleted
- `replacement`   replaces segments by a new segment that compaction or a repair has written

Source: Kafka's `UnifiedLog.deleteOldSegments`, `UnifiedLog.replaceSegments`.
"""
