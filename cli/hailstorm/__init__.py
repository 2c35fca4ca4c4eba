"""`hmb hailstorm`: commands that run topologies, and show their state.

A *topology* is a stream program of Hailstorm. Its spouts read records from topics and convert them to *tuples*.
Its bolts process tuples, and can keep a state. Its sinks receive the results.

`hmb hailstorm` has these commands:
    run         runs all processors of a topology in threads or in processes, or runs only one processor
    status      shows the state of a running topology and its processors
    snapshots   lists the snapshots (saved states) in a store: a directory or a database file
    check       tests whether states can be merged in any order, and whether the order of records changes results
    registry    runs a registry, through which processors in separate processes find each other
    demo        runs an example of the documentation on real data, and draws the result

Several commands of `hmb hailstorm` share two modules: `arguments` defines command-line arguments, and `display`
shows a running topology on a terminal. The folder `examples/` contains the topologies of `hmb hailstorm demo`.

The user of `hmb hailstorm` names a topology as `module:name` or as `path/to/file.py:name` (see
`hmb.hailstorm.reference`).
"""

from __future__ import annotations

import click

from ..lazy_group import CommandEntry, LazyGroup

COMMANDS = {
    "run": CommandEntry("run", "Run a topology until it ends, or one of its processors."),
    "status": CommandEntry("status", "Show the state of a running topology."),
    "snapshots": CommandEntry("snapshots", "List the snapshots of a store."),
    "check": CommandEntry("check", "Look for broken laws, and for results that depend on the order of tuples."),
    "registry": CommandEntry("registry", "Serve a registry for processors in processes of their own."),
    "demo": CommandEntry("demo", "Run an example on real data, and draw its result."),
}


@click.group("hailstorm", cls=LazyGroup, package=__name__, entries=COMMANDS)
def command() -> None:
    """Run, watch and check Hailstorm's topologies.

    A topology is a program that reads records from Kafka's topics and computes results from them, for example counts.
    Each record counts exactly once, even after a crash. To see a first example, run: hmb hailstorm demo trending
    """
