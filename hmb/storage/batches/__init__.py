"""Batches: what the broker does with a batch besides storing and sending its bytes.

To store or send a batch, the broker reads only its header. It checks more in two cases. Before an append it checks the
records, because a producer may send any bytes. Before it reads records, it checks the CRC, because a disk may have
changed a bit.

Read in this order:

- `validation`    what a producer may append
- `preparation`   compression, timestamps and offsets before the log's lock is taken
- `headers`       a scan of the headers, without the records
- `opening`       the check of the CRC before the broker reads records
- `time_search`   the first record after a time
"""
