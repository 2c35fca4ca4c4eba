"""The command line: `hmb` and its commands.

Kafka has a shell script for each task, and each script starts a JVM. `hmb` is one command with subcommands, and it
starts in 0.1 s. The long options of `hmb` have the names that Kafka's tools use. Its short options have the letters
that kcat and rpk use. Users of these tools therefore know the options already.

Each subcommand of `hmb` is a click command in a module of its own. The table COMMANDS in the module `main` lists all
subcommands. `hmb` imports the module of a subcommand only when the user runs the subcommand.

The command `hmb topics describe weather` runs through these modules:
    entry.run                      the console script; it lets Ctrl-C end the program without a traceback
    main.COMMANDS["topics"]        imports cluster/topics.py
    shared/subjects.py             checks the argument `weather`
    shared/client_options.py       finds the cluster's address: -b, HMB_BOOTSTRAP_SERVERS, a profile, a default
    cluster/topics.py describe     fetches the description of the topic with `hmb.Admin`
    shared/output.py               prints a table, or with --json the same rows as JSON
    shared/errors.py               prints one line and sets the exit code if something fails

Read in this order:
- `entry`, `main`  the function that runs first; the table of all commands; exit codes after an error and after Ctrl-C
- `lazy_group`     a group that imports a command only when the user runs it
- `shared/`        the code that several commands use: options, output, errors
- `cluster/`       commands for a cluster: topics, groups, offsets, meta, configs
- `records/`       commands for records: produce, consume
- `wire/`          commands for bytes on the network: decode, sniff
- `disk/`          commands for the files of a log: dump-log, index-inspect
- `security/`      commands for users, tokens, ACLs, quotas and certificates
- `backup/`        backup and restore: topics as files
- `mirror/`        copies topics to another cluster
- `monitoring/`    state, top and ui: what a running broker does
- `broker`, `demo` run a broker; `demo_data` contains the weather events of the demo
- `faults`         changes the faults of a broker for tests
- `hailstorm/`     commands for topologies of Hailstorm
- `lab/`           the exercises for students
- `profile`, `completion`, `help`  set up and explain the command line itself
- `bench`, `spark`                 run code of other folders: the benchmarks, the Spark data source
"""
