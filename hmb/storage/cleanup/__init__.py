"""The cleanup of a log: it deletes old segments, and it replaces segments that were compacted or repaired.

An append changes only the end of a log. The modules of this folder change the rest of the log: they delete and
replace segments. (At its start, the broker can also cut damaged bytes off the end of a log. The folder
`recovery` does this.) For example, a log has the segments 0, 100 and 200, and all records of segment 0 are
older than `retention.ms`. The cleanup removes segment 0 from the log, and 100 becomes the log start offset.

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
