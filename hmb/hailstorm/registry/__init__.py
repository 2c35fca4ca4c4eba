"""The registry: the list of living processors, their reports, and the master state of the negotiator.

The processors of a topology may be threads, processes or machines. They find each other through a small shared tree of
*nodes*, each a path with a value of bytes:

    master              the master state, written by the negotiator
    living/count-0      the report of a processor, written by it

All nodes are *ephemeral*: a node belongs to the session that created it, and it disappears when this session ends. A
session ends in two cases. If a process is killed, its connection breaks, and the registry notices this within
milliseconds. If a process hangs, it sends no heartbeat for the session timeout. A missing node therefore shows the
other processors that a processor has died.

A session can *watch* a prefix of paths. The registry calls the watch with each value that exists and with each change,
in order. A watch can miss values that are overwritten quickly, but never the newest value.

Only one session can create the node `master`. If several negotiators run, the owner of this session is elected.

    LocalRegistry        the threads of one process
    RegistryServer       the same registry for other processes, over TCP; `RemoteRegistry` is its client
    ZooKeeperRegistry    an Apache ZooKeeper ensemble, as in the paper; needs `pip install 'hmb[zookeeper]'`

Read in this order:

- `sessions`     the operations of a registry and of a session
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
