"""The commands `hmb dump-log` and `hmb index-inspect`, which print the contents of a log's files.

`hmb dump-log` decodes all files of a log. `hmb index-inspect` decodes one index file. It can also show how the
broker looks up an offset or a timestamp in this index.

The broker stores each partition in a directory. The log of the partition consists of segments. A segment consists of
several files, whose names contain the first offset of the segment:
    hmb-data/weather-0/00000000000000000000.log         record batches
                       00000000000000000000.index       offset -> position in the .log file
                       00000000000000000000.timeindex   timestamp -> offset
                       00000000000000000350.log         the next segment, which begins with offset 350

`hmb dump-log` and `hmb index-inspect` only read the files, so a broker can use the files at the same time. The package
`hmb.storage.dump` decodes and checks the files. The modules of this folder declare the options and print the results.

Read in this order:
1. `dump_log`       the contents of all files: as Kafka prints them, as bytes, as a tree, as JSON, or only the damage
2. `index_inspect`  the entries of one index, and the steps of a look-up
"""
