"""`hmb mirror`: copy topics from one cluster to another one.

The modules of this folder are:
- `command`  the options of `hmb mirror`
- `display`  the live table, and the lines of `--json`
"""
