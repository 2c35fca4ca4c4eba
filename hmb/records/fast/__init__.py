"""Functions that encode and decode records faster than `hmb.records.record`.

If you read HMB for the first time, skip this folder.

The module `hmb.records.record` is easy to read, but slow. To decode one record, Python executes about 100
bytecodes, most of them in calls of `read_varint`. For a batch of 5000 records, Python executes about
500,000 bytecodes.

Each fast decoder in this folder has one purpose, and skips the fields that this purpose does not need. For
example, compaction needs the keys of all records, and `plain_keys` returns only the keys. The module
`value_runs` encodes records faster than `append_record`.

This table shows how long a fast module needs for one record. The column "readable" shows how long
`hmb.records.record` needs for the same work. We measured both on one shared core with CPython 3.11. The batch
had 5000 records, each with a key of 8 bytes (no key for `value_runs`) and a value of 100 bytes:
    module               purpose                                    fast     readable
    `consumer_records`   records for a consumer                     2.1 us   3.8 us
    `columns`            Arrow columns for a consumer               0.5 us   5.0 us
    `compaction`         the keys, for compaction                   0.6 us   2.8 us
    `compaction`         half of the records, for compaction        0.7 us   2.8 us
    `raw_records`        positions, without a copy of the value     2.3 us   2.8 us
    `value_runs`         encoding values of one call                0.3 us   0.8 us

After a crash, the broker checks its batches with the module `batch_check`. This module decodes only the header
of a batch, and computes the CRC of the batch's bytes. If the module does not accept a batch, the broker checks
the batch again with slower code: `parse_batch` and the batch's `check` method.

The module `raw_records` is only a little faster than `hmb.records.record`, but it uses less memory, because it does not
copy the values.

All fast decoders except `raw_records` can decode only *plain* records. Each of these decoders has its own
limits for the lengths and numbers in a plain record. For example, `consumer_records` accepts at most 8,191
bytes after the length field of a record. Nearly all batches contain only plain records.

A fast decoder stops at a record that is not plain (for example, very long). The next slower decoder then
decodes all records of the batch:
    decoder              next slower decoder
    `columns`            `consumer_records`
    `consumer_records`   `hmb.records.record`
    `compaction`         `raw_records`, which can decode all records

A fast decoder stops at a damaged record, and does not report the damage. A slower decoder then decodes the records
again, and raises the error. So only the decoders `hmb.records.record` and `raw_records` contain error messages. Tests
compare the results of each fast module with the results of `hmb.records.record`, for valid and for damaged bytes.

Read the modules in this order:
- `plain`             tables and an exception that other modules use
- `consumer_records`  the simplest example of a fast decoder
- `raw_records`       finds the positions of each record and its parts
- `compaction`        finds the keys and the bytes of records
- `columns`           converts records to Arrow columns, with numpy
- `value_runs`        the only encoder in this folder
- `batch_check`       checks a batch after a crash, and decodes only its header
"""
