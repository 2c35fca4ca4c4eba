"""Files: how segments and indexes open, sync and remove their files, and how the broker reserves disk space.

The operating system limits how many files a process can have open. A broker can have more files than this limit. So a
segment uses *virtual* files: the broker opens a file only when it uses the file, and can close it again later.

For example, a broker has 1,000 partitions. Each partition has two segments, and each segment has three files, so the
broker has 6,000 files. If a process can have only 1,024 files open, a broker that keeps all its files open cannot even
start.

When the broker writes bytes to a file, the bytes are only in the kernel's memory until the broker syncs the file. The
name of a new file is on disk only after a sync of its directory.

On a full disk, the broker must still write a few bytes, for example the offsets that consumers commit. So it
reserves disk space for this case.

Read in this order:
- `virtual`           files that are open only while they are needed; syncs and their errors
- `durability`        replacing a small file in one step; syncs of directories
- `windows`           reading a large file part by part
- `sorted_entries`    the file of an index: append an entry, find an entry
- `index_blocks`      an optimization: blocks of an index that stay in memory
- `disk_reserve`      a file that the broker deletes when the disk is full, to get space for its own writes
- `together`          the files of a segment, which are renamed and deleted together
- `external_changes`  files that another process removes, cuts or changes
"""
