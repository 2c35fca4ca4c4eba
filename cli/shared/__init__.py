"""Code that several commands use.

Each command of `hmb` is a function. The library click calls this function with the values of the options. This
folder contains code that several commands share, for example to parse options, print tables and report errors.

With these modules, all commands follow four rules:
- Data goes to standard output. Progress, notes and errors go to standard error.
- `--json` prints one JSON object per line. The keys of the object are the names of the table's columns.
- A command reports an error in one line. The exit code shows the kind of error (`errors`).
- A module imports the broker and the client only inside functions. `hmb --help` therefore needs only 0.1 s.

Read in this order:
1. `errors`          exit codes, and the line that a user reads when something fails
2. `output`          tables, and the same rows as JSON
3. `parameters`      types of options: names, numbers, paths, delimiters
4. `settings`        `name=value`, with durations and sizes such as `retention.ms=1h`
5. `times`           times and durations: `2026-02-14T10:30:00Z`, `-1h30m`
6. `profiles`        files in which a user stores the addresses of clusters
7. `client_options`  the options of every command that talks to a cluster: `-b`, `-X`, `--config`
8. `subjects`        the arguments that name topics, partitions or groups
9. `completion`      names of topics and groups, which the Tab key completes
10. `headings`       a `--help` that shows options under headings
11. `waiting_notice` the line that appears when a broker does not answer
12. `interruption`   a Ctrl-C that waits for the end of a step
13. `streams`        closed standard streams, full disks, and pipes that nobody reads any more

Three more modules are only for commands that run a broker:
- `http_address` declares the options for the broker's HTTP ports.
- `control` opens a control port, through which a test makes the broker fail on purpose.
- `allocator` changes how the broker's process allocates memory, so that the process needs less.
"""
