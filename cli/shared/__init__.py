"""Shared parts of the commands.

A command is a function that click calls with the values of its options. This folder holds the parts that several
commands need, so that each part exists once: types of options, the address of a cluster, errors, tables and JSON,
standard streams and signals.

The rules that these modules keep for all commands:

- Data goes to standard output. Progress, notes and errors go to standard error.
- `--json` prints one JSON object a line. Its keys are the column names of the table.
- An error is one line and has an exit code of its own (`errors`).
- A module imports the broker and the client only inside functions. `hmb --help` therefore answers in 0.1 s.

Read in this order:

1. `errors`          exit codes, and the line that a user reads when something fails
2. `output`          tables, and the same rows as JSON
3. `parameters`      types of options: names, numbers, paths, delimiters
4. `settings`        `name=value`, with durations and sizes such as `retention.ms=1h`
5. `times`           times and durations: `2026-02-14T10:30:00Z`, `-1h30m`
6. `profiles`        a file of the user that names a cluster
7. `client_options`  the options that every command for a cluster has: `-b`, `-X`, `--config`
8. `subjects`        the topics and groups that a command is about
9. `completion`      names that Tab completes, which a broker provides
10. `headings`       options under headings in `--help`
11. `patience`       the line that appears when a broker does not answer
12. `interruption`   Ctrl-C between two steps
13. `streams`        standard streams that are closed, full or no longer read
"""
