"""Files: open files, syncs and space on the disk, below segments and indexes.

A broker has more files than the process may open, so a segment holds *virtual* files, which open when they are used. A
write is in the kernel's memory until a sync. A new name is not on disk until its directory is synced. If the disk is
full, the broker must still delete, so it reserves some space for that.

Read in this order:

- `virtual`           files that are open only while they are needed; syncs and their errors
- `durability`        replacing a small file in one step; syncs of directories
- `windows`           reading a large file part by part
- `disk_reserve`      space for the broker's own writes on a full disk
- `together`          the files of a segment, which are renamed and deleted together
- `foreign_changes`   files that another process removes, cuts or changes
"""
