"""Commands for the files of a log: `hmb dump-log` prints them, and `hmb index-inspect` explains an index.

A partition is a directory. A segment of its log is a few files with the same base offset in their names::

    hmb-data/weather-0/00000000000000000000.log         record batches
                       00000000000000000000.index       offset -> position in the .log file
                       00000000000000000000.timeindex   timestamp -> offset
                       00000000000000000350.log         the next segment begins with offset 350

`hmb dump-log` and `hmb index-inspect` only read the files, so a broker may use the files at the same time.
`hmb.storage.dump` and `hmb.storage.index_inspection` do the work. The modules of this folder hold the options and the
output.

Read in this order:

1. `dump_log`       the contents of all files: Kafka's lines, bytes, a tree, JSON, or only damage
2. `index_inspect`  the entries of one index, and the steps of a look-up
"""
