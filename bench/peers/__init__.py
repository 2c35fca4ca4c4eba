"""Peers: brokers of HMB and of Kafka that a benchmark or a test starts, each in a process of its own.

The speed of HMB alone means little, because it depends on the machine. A benchmark therefore starts HMB and Apache
Kafka on one machine, and measures both alternately. Two releases of Kafka can be measured. Kafka 4.3.0 is a current
release. Kafka 0.8.2.2 is the last release of the series 0.8.2. The bachelor thesis on which HMB is based measured this
series in 2015.

The tests in `tests/conformance` start HMB and Kafka with this package. They compare the responses and the files of HMB
with the responses and the files of Kafka.

Read in this order:
1. `broker_process`  the class `Peer`: start a broker, wait until it is ready, stop it, kill it
2. `hmb_broker`      HMB's broker, of this installation or of another checkout
3. `kafka_43`, `kafka_082`  two releases of Kafka; `jars` finds their jars, and `fetch` downloads them
4. `chosen`          the brokers that the user chooses with the options of a benchmark
5. `topics`          create, alter and delete topics
6. `resources`       CPU time and memory of a process
7. `program`         runs a client program, and returns its output, CPU time and memory
8. `empty_broker`    a broker that discards records, and so shows the highest rate of a broker in Python
"""

from ..errors import PeerFailed, PeerUnavailable
from .broker_process import HOST, START_SECONDS, Peer, free_ports
from .hmb_broker import Hmb, Installation
from .jars import CLIENT_OPTIONS, FETCHED, java, kafka_082_jars, kafka_43_jars, kafka_mirror_jars, use_kafka
from .kafka_082 import Kafka082
from .kafka_43 import Kafka43
from .resources import cpu_seconds, resident_bytes

__all__ = [
    "CLIENT_OPTIONS",
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
    "kafka_mirror_jars",
    "resident_bytes",
    "use_kafka",
]
