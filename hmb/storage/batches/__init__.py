"""Batches: how the broker checks, converts and searches batches.

The broker usually does not decode the records of a batch. When it appends a batch, it reads the header, and
checks the size and the CRC, because a producer can send any bytes. When it sends a batch, it needs only the
header. The broker decodes the records only in a few cases, for example to compress them with another codec.
Before it decodes records from the disk, it checks the CRC again, because a disk can damage data.

For example, a producer sends a batch of 1,000,000 bytes with 10,000 records. The broker decodes the header (61
bytes), but no record. It computes the CRC of the 999,979 bytes after the CRC field (the bytes 17 to 20).

Read in this order:
- `validation`    what a producer may append
- `preparation`   compression and timestamps of a batch, before the log's lock is taken
- `headers`       a scan of the headers, without the records
- `decoding`      the check of the CRC before the broker reads records
- `time_search`   the first record at or after a timestamp
- `messages`      offsets and codecs of messages v0 and v1, from old clients
"""
