"""Batches: what the broker does with a batch besides storing and sending its bytes.

The plain path looks at a batch's header only. More is necessary before an append, because a producer may send anything,
and before the broker reads records itself, because a disk may have changed a bit.

Read in this order:

- `validation`    what a producer may append
- `preparation`   compression, timestamps and offsets before the log's lock is taken
- `headers`       a scan of the headers, without the records
- `opening`       the check of the CRC before the broker reads records
- `time_search`   the first record after a time
"""
