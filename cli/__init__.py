"""The command line: `hmb` and its commands.

Kafka has a shell script for each task, and each script starts a JVM. `hmb` is one command with subcommands that starts
in 0.1 s. It uses the option names of Kafka's tools and the letters of kcat and rpk, so that users of these tools know
them already. Each subcommand is a click command in a module of its own. `main` holds the table of all commands and
imports a command's module only when the command runs.

The command `hmb topics describe weather` runs through these modules:

    entry.run                      the console script; from now on Ctrl-C ends the program without a traceback
    main.COMMANDS["topics"]        imports cluster/topics.py
    shared/subjects.py             checks the argument `weather`
    shared/client_options.py       finds the cluster's address: -b, HMB_BOOTSTRAP_SERVERS, a profile, a default
    cluster/topics.py describe     asks the cluster with `hmb.Admin`
    shared/output.py               prints a table, or with --json the same rows as JSON
    shared/errors.py               prints one line and sets the exit code if something fails

Read in this order:

- `main`      the table of commands, and how errors and Ctrl-C end a command
- `shared/`   what the commands share: options, output, errors
- `cluster/`  commands for a cluster: topics, groups, offsets, meta, configs
- `records/`  commands for records: produce, consume
- `wire/`     commands for bytes on the network: decode, sniff
- `disk/`     commands for files of a log: dump-log, index-inspect
- `broker`, `demo`                                    run a broker
- `profile`, `completion`, `help`                     settings of the command line itself
- `bench`, `spark`                                    lead to other folders of the project
"""
