"""Constants of the commands and the library: default values, paths, and names that users can choose from.

This module is small and imports almost nothing, so that `hmb --help` starts fast. For example, it contains the
names of the partitioners. A command can use these names without importing the larger module that implements the
partitioners. That module imports the names from here.
"""

from typing import Literal, get_args

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_SERVER = f"{DEFAULT_HOST}:{DEFAULT_PORT}"
DEFAULT_DATA_DIR = "hmb-data"
DEFAULT_UI_PORT = 9080
STATE_FILE = "state-address.json"  # a file in the data directory with the URLs of the broker's state and web page
# This file in the data directory contains a secret text, the token. The links to the broker's state and web page
# contain the token. A restarted broker uses the old token, so these links still work.
TOKEN_FILE = "state-token"
SERVERS_VARIABLE = "HMB_BOOTSTRAP_SERVERS"  # the environment variable with the addresses that commands connect to

# Commands of `hmb` send HTTP requests to these paths.
SLOWEST_REQUESTS_PATH = "/slowest-requests"
HEALTH_PATH = "/healthz"
FAULTS_PATH, REQUESTS_PATH, CORRUPT_PATH = "/faults", "/requests", "/corrupt"

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
CODEC_NAMES: tuple[str, ...] = get_args(Compression)
PARTITIONER_NAMES = ("murmur2", "hash", "random")
Acknowledgement = Literal["accept", "release", "reject"]  # what a member of a share group can do with a record
ACKNOWLEDGEMENTS: tuple[Acknowledgement, ...] = get_args(Acknowledgement)
OffsetName = Literal["earliest", "latest"]  # the first offset of a log, and the offset after its last record
OFFSET_NAMES: tuple[OffsetName, ...] = get_args(OffsetName)
IsolationLevelName = Literal["read_uncommitted", "read_committed"]  # `ISOLATION_LEVELS` contains their numbers
ASSIGNOR_NAMES = ("range", "roundrobin", "sticky", "cooperative-sticky")

Cut = Literal["before", "after"]  # a simulated fault closes the connection before or after the broker handles a request
CUTS: tuple[Cut, ...] = get_args(Cut)
DiskFaultKind = Literal["full", "failing", "slow"]  # the simulated faults of a disk
DISK_FAULT_KINDS: tuple[DiskFaultKind, ...] = get_args(DiskFaultKind)

# A session in Hailstorm's registry ends if the client sends nothing for this time (seconds). The limit is long, because
# a busy process can send its heartbeats late.
REGISTRY_SESSION_TIMEOUT = 5.0
GRACE_PERIOD = 1.0  # how long (s) records flow between two snapshots of a Hailstorm topology
# HMB adds this text to the message about an unexpected exception, so that the user reports the exception.
BUG = "this is a bug in HMB: report this message and the traceback to HMB's developers"
LONGEST_WAIT = 60.0  # seconds; a waiting thread checks its condition after this time, even if no thread has woken it

# The order matters: in Kafka's messages, 1 means SCRAM-SHA-256, and 2 means SCRAM-SHA-512 (hmb/security/scram.py).
SCRAM_NAMES = ("SCRAM-SHA-256", "SCRAM-SHA-512")
# The smallest and the largest number of SCRAM iterations that Kafka's brokers accept.
SCRAM_ITERATIONS = (4096, 16384)
