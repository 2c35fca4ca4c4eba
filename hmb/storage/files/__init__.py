"""Files: how segments and indexes open, sync and remove their files, and how the broker reserves disk space.

A broker has more files than its process may have open. So a segment uses *virtual* files, which the broker opens only
when it uses them.

When the broker writes bytes to a file, the bytes are only in the kernel's memory until the broker syncs the file. The
name of a new file is on disk only after a sync of its directory.

If the disk is full, the broker must still write a little, for example to delete records. So it reserves disk space for
this case.

For example, a broker has 1,000 partitions, each with two segments of three files. Together, these are 6,000 files. If
the process can have only 1,024 files open, a broker that keeps all its files open could not even start.

Read in this order:
- `virtual`           files that are open only while they are needed; syncs and their errors
- `durability`        replacing a small file in one step; syncs of directories
- `windows`           reading a large file part by part
- `sorted_entries`    the file of an index: append an entry, find an entry
- `index_blocks`      an optimization: blocks of an index that stay in memory
- `disk_reserve`      disk space for the broker's own writes when the disk is full
- `together`          the files of a segment, which are renamed and deleted together
- `external_changes`   files that another process removes, cuts or changes
"""
