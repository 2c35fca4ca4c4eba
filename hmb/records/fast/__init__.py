"""Fast versions of encoding and decoding records. A first reading of HMB skips this folder.

`hmb.records.record` encodes and decodes a record in the way that is easiest to read. For each record, Python executes
some 100 bytecodes of that module, mostly for calls of `read_varint`. A batch of small records holds thousands of
records. So four tasks need faster code. Each module of this folder does the work of `decode_records` or
`append_record` for one purpose, and skips the fields that this purpose does not need.

The table shows the time for one record of a batch with 5000 records. Each record has a key of 8 bytes and a value of
100 bytes. The machine is one shared core with CPython 3.11. The right column is the time of the readable code for the
same result:

===================  =========================================  =======  ========
module               purpose                                    fast     readable
===================  =========================================  =======  ========
`consumer_records`   records for a consumer                     2.1 us   3.8 us
`columns`            Arrow columns for a consumer               0.5 us   5.0 us
`compaction`         the keys, for compaction                   0.6 us   2.8 us
`compaction`         half of the records, for compaction        0.7 us   2.8 us
`raw_records`        positions, without a copy of the value     2.3 us   2.8 us
`value_runs`         encoding values of one call                0.3 us   0.8 us
===================  =========================================  =======  ========

The gain of `raw_records` is memory rather than time: a value of 32 MB is not copied.

All fast decoders follow one pattern. A decoder handles *plain* records only. Nearly all batches consist of plain
records. The decoder stops at the first record that is not plain, and the readable decoder reads the whole batch again.
Only the readable decoder reports damage, so each error message exists once. Tests with hypothesis compare each fast
module with the readable one, on valid and on damaged bytes.

Read in this order:

- `plain`             tables and an exception that all fast decoders use
- `consumer_records`  the simplest example of the pattern
- `raw_records`       positions of the parts of each record
- `compaction`        keys and bytes of records
- `columns`           Arrow columns, with numpy
- `value_runs`        the only encoder in this folder
"""
