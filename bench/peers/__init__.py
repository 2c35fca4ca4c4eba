"""Peers: the brokers that a benchmark measures and a conformance test compares, each a process of its own.

HMB's figures alone mean little. A benchmark therefore starts HMB and Apache Kafka on one machine and measures both
alternately. Kafka 4.3.0 is the Kafka of today. Kafka 0.8.2.2 is the last release of the Kafka that the thesis measured.
The tests in `tests/conformance` use the same peers to compare responses and files.

Read in this order:

1. `broker_process`  `Peer`: start, wait until ready, stop, kill
2. `hmb_broker`      HMB's broker, of this installation or of another checkout
3. `kafka_43`, `kafka_082`  the two Kafkas; `jars` finds their jars, and `fetch` fetches them
4. `chosen`          the brokers that the options of a benchmark choose
5. `topics`          create, alter and delete topics on any of these brokers
6. `resources`       CPU time and memory of a process
7. `program`         a client program as a process: its output and its costs
8. `empty_broker`    a broker that discards records, as a limit
"""

from ..errors import PeerFailed, PeerUnavailable
from .broker_process import HOST, START_SECONDS, Peer, free_ports
from .hmb_broker import Hmb, Installation
from .jars import FETCHED, java, kafka_082_jars, kafka_43_jars, use_kafka
from .kafka_082 import Kafka082
from .kafka_43 import Kafka43
from .resources import cpu_seconds, resident_bytes

__all__ = [
    "FETCHED",
    "HOST",
    "START_SECONDS",
    "Hmb",
    "Installation",
    "Kafka082",
    "Kafka43",
    "Peer",
    "PeerFailed",
    "PeerUnavailable",
    "cpu_seconds",
    "free_ports",
    "java",
    "kafka_082_jars",
    "kafka_43_jars",
    "resident_bytes",
    "use_kafka",
]
