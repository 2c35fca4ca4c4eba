"""`hmb mirror`: copy topics from one cluster to another one.

The classes of `hmb.mirror` copy the records. The command reads the options, starts the mirror, and shows its progress.
The modules of this folder are:
- `command`  the options of `hmb mirror`
- `display`  the live table, and the lines of `--json`
"""
