"""`hmb mirror`: copy topics from one cluster to another one.

- `command`  the options of `hmb mirror`
- `display`  the live table, and the lines of `--json`
"""
