"""The cleanup of a log: it deletes old segments, and it replaces segments that were compacted or repaired.

An append changes only the end of a log. The modules of this folder make all other changes: they delete and replace
segments. For example, a log has the segments 0, 100 and 200, and all records of segment 0 are older than
`retention.ms`. The cleanup removes segment 0 from the log, and 100 becomes the log start offset.

Only one cleanup of a log runs at a time, under the log's cleanup lock. Appends and reads continue during a cleanup.
When the cleanup deletes or replaces a segment, a reader may still be reading this segment. So the cleanup first only
renames the files of the segment, and removes these files after `file.delete.delay.ms`. A DeleteRecords request does not
take the cleanup lock, because it only moves the log start offset, under the log's lock.

Read in this order:
- `deletion`      deletes the oldest segments, and moves the log start offset (DeleteRecords)
- `retention`     which of the oldest segments may be deleted
- `replacement`   replaces segments by a new segment that compaction or a repair has written

Source: Kafka's `UnifiedLog.deleteOldSegments`, `UnifiedLog.replaceSegments`.
"""
