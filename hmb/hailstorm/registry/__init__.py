"""The registry stores each processor's report and the negotiator's newest decision (*master state*).

The processors of a topology may run in threads, in processes or on several machines. The processors find
each other through a small shared tree of *nodes*. A node has a path and a value (bytes):
    path                value
    master              the master state, written by the negotiator
    living/count-0      the report of the processor count-0, written by this processor

All nodes (entries) are *ephemeral*: a node disappears when the session that created it ends. If a processor's
report disappears, the negotiator treats this processor as lost.

Each session has an owner: a processor or the negotiator. A session ends when the owner closes it, and in two
other cases:
- The owner's process is killed. A `RegistryServer` ends the session within milliseconds. A `ZooKeeperRegistry`
  ends it after the session timeout.
- The owner's process hangs. Its heartbeats stop, and the session ends after the session timeout.

A thread that uses a `LocalRegistry` directly has no connection and no session timeout.

A session can *watch* a prefix: all nodes whose path begins with this prefix. For this, the session passes a
function to the registry. The registry first calls the function for each of these nodes that already exists. It
then calls the function for each change. The calls for one node come in the order of its changes. If a value
changes several times within a short time, the registry may leave out some of the values, but never the newest
one.

Only one session can create the node `master`. If several negotiators run, the negotiator whose session created this
node is elected.

Three registries exist:
    LocalRegistry        serves the threads of one process
    RegistryServer       serves other processes over TCP; they use the client `RemoteRegistry`
    ZooKeeperRegistry    uses Apache ZooKeeper, as in the paper; needs `pip install 'hmb[zookeeper]'`

Read in this order:
- `sessions`     the operations of a registry and of a session
- `local`        the registry of one process, with all nodes in memory
- `server`, `remote`    sessions over TCP
- `zookeeper`    the same operations on ZooKeeper

Source: Hailstorm, chapter 3.2, "Apache Zookeeper".
"""

from hmb.hailstorm.registry.local import LocalRegistry
from hmb.hailstorm.registry.remote import RemoteRegistry
from hmb.hailstorm.registry.server import RegistryServer
from hmb.hailstorm.registry.sessions import Registry, RegistrySession, SessionExpiredError

__all__ = [
    "LocalRegistry",
    "Registry",
    "RegistryServer",
    "RegistrySession",
    "RemoteRegistry",
    "SessionExpiredError",
]
