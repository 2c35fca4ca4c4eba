"""Files: how segments and indexes open, sync and remove their files, and how the broker reserves disk space.

A broker has more files than its process may open. So a segment has *virtual* files, which open when they are used.
Written bytes are only in the kernel's memory until a sync. The name of a new file is not on disk until its directory is
synced. On a full disk the broker must still write a little, for example to delete records. So it reserves space.

Read in this order:

- `virtual`           files that are open only while they are needed; syncs and their errors
- `durability`        replacing a small file in one step; syncs of directories
- `windows`           reading a large file part by part
- `sorted_entries`    the file of an index: append an entry, find an entry
- `disk_reserve`      space for the broker's own writes on a full disk
- `together`          the files of a segment, which are renamed and deleted together
- `foreign_changes`   files that another process removes, cuts or changes
"""
