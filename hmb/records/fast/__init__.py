"""Functions that encode and decode records faster than `hmb.records.record`.

If you read HMB for the first time, skip this folder.

The module `hmb.records.record` is written to be easy to read, and not to be fast. To decode one record, Python executes
about 100 bytecodes, mostly for calls of `read_varint`. A batch can contain thousands of small records, so this time
matters. Most modules of this folder do the work of `decode_records` for one purpose, and skip the fields that this
purpose does not need. The module `value_runs` encodes records, as `append_record` does.

This table shows the time for one record of a batch. The batch has 5000 records, and each record has a key of 8 bytes
and a value of 100 bytes. We measured on one shared core with CPython 3.11. The column "readable" is the time that
`hmb.records.record` needs for the same result:
    module               purpose                                    fast     readable
    `consumer_records`   records for a consumer                     2.1 us   3.8 us
    `columns`            Arrow columns for a consumer               0.5 us   5.0 us
    `compaction`         the keys, for compaction                   0.6 us   2.8 us
    `compaction`         half of the records, for compaction        0.7 us   2.8 us
    `raw_records`        positions, without a copy of the value     2.3 us   2.8 us
    `value_runs`         encoding values of one call                0.3 us   0.8 us

The module `batch_check` decodes no records. It checks batches after a crash. It replaces the functions
`RecordBatch.parse` and `check`, which are easier to read but slower.

The module `raw_records` is only a little faster than `hmb.records.record`, but it uses less memory, because it does not
copy the values.

All fast decoders except `raw_records` work in the same way. Such a decoder can decode only *plain* records: records
without unusual lengths or numbers. Nearly all batches contain only plain records. When the decoder finds a record that
is not plain, it stops. A slower decoder then decodes all the records again:
    after `consumer_records`   the readable decoder, `hmb.records.record`
    after `compaction`         `raw_records`, which can decode all records
    after `columns`            `consumer_records`

A fast decoder stops at a damaged record, and does not report the damage. A slower decoder then decodes the records
again, and raises the error. So only the decoders `hmb.records.record` and `raw_records` contain error messages. Tests
compare the results of each fast module with the results of `hmb.records.record`, for valid and for damaged bytes.

Read in this order:
- `plain`             tables and an exception for all fast decoders
- `consumer_records`  the simplest example of a fast decoder
- `raw_records`       finds the positions of each record and its parts
- `compaction`        finds the keys and the bytes of records
- `columns`           converts records to Arrow columns, with numpy
- `value_runs`        the only encoder in this folder
- `batch_check`       checks a batch after a crash; decodes only the header
"""
