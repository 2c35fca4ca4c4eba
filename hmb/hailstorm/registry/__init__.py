"""The registry: which processors are alive, what they report, and what the negotiator wants.

The processors of a topology may be threads, processes or machines. They find each other through a small shared tree of
*nodes*, each a path with a value of bytes:

    master              the master state, written by the negotiator
    living/count-0      the report of a processor, written by it

All nodes are *ephemeral*: a node belongs to the session that created it, and it disappears when this session ends. A
session ends when its connection breaks, which the system notices within milliseconds if a process is killed, or when it
has sent no heartbeat for the session timeout, because the process hangs. So a missing node is how the others learn that
a processor died. A session can *watch* a prefix of paths: it is called with each value that is there already and with
each change, in order. It may miss values that are overwritten quickly, but never the newest one.

Only one session can create `master`. That is how one of several negotiators is elected.

    LocalRegistry        the threads of one process
    RegistryServer       the same registry for other processes, over TCP; `RemoteRegistry` is its client
    ZooKeeperRegistry    an Apache ZooKeeper ensemble, as in the paper; needs `pip install 'hmb[zookeeper]'`

Read in this order:

- `sessions`     what a registry and a session can do
- `local`        the tree itself
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
