"""Tools for tests of programs that use Kafka: a broker in the test's process, and fixtures for pytest.

A test of a producer or a consumer needs a broker, and a topic that no other test uses. If HMB is installed,
pytest loads the module `plugin.py` through the entry point `pytest11`. The plugin offers these fixtures:
- `hmb_broker`, a broker in the process of pytest, for the whole test session (`hmb.Broker`)
- `hmb_secure_broker`, a broker with TLS and the user `alice` (`hmb_secure_broker.security`)
- `hmb_topic`, the name of a new topic for each test
- `hmb_group`, a new name of a consumer group for each test
- `hmb_requests`, the requests that `hmb_broker` has received from clients during the test
- `hmb_faults`, the faults of `hmb_broker`; they are removed at the end of the test
- `hmb_clock`, the clock of `hmb_broker`; a test can move it forward
- `kafka_bootstrap_servers`, the address to which a client of any library connects

Every start of pytest loads HMB's plugin, even in a project that does not use Kafka. To keep this start fast, the plugin
imports the broker only when a test uses a fixture.

HMB's fixtures work with pytest-xdist, which runs tests in several worker processes. Each worker has its own broker,
with a free port and a temporary directory. With the option `--hmb-bootstrap`, all workers share the broker at the given
address. Each name that `hmb_topic` or `hmb_group` returns ends with eight random hexadecimal digits. So no two workers
use the same topic or group.

Read in this order:
1. `embedded.py`   the broker of a test: restarts, and access to records without a client
2. `plugin.py`     the options, the fixtures, and the report of a failed test
3. `faults/`       errors, delays, lost responses and cut connections
4. `disk.py`       a slow, full or failing disk, and damaged batches
5. `clock.py`      a clock that a test moves forward
6. `rounds.py`     rounds of retention and compaction that a test starts
7. `request_record.py`  the requests that clients have sent to the broker, with its responses
8. `cluster.py`    a simulated cluster, for clients that send each request to the leader of a partition
9. `versions.py`   the APIs and versions of older releases of Kafka
10. `fixtures/`     the broker of a test session, and the report of a failed test
11. `settings.py`   the values of settings, and defaults that make tests fast
12. `security.py`   the users and certificates of an embedded broker
13. `stored_records.py`  the records of a log, read without a client
14. `arguments.py`  checks of the types of arguments
15. `errors.py`     the exceptions
"""

# Type checkers treat a variable of this name as true, like `typing.TYPE_CHECKING`. This module does not import
# `typing`, because that import takes 3 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from hmb.testing.clock import ManualClock
    from hmb.testing.cluster import SimulatedCluster

    Cluster = SimulatedCluster

__all__ = ["ManualClock", "SimulatedCluster"]


def __getattr__(name: str) -> object:
    """Import the class `name` at its first use, so that `import hmb.testing` stays fast at each start of pytest.

    `Cluster` is the short name of `SimulatedCluster`.
    """
    if name in ("SimulatedCluster", "Cluster"):
        from hmb.testing.cluster import SimulatedCluster

        return SimulatedCluster
    if name == "ManualClock":
        from hmb.testing.clock import ManualClock

        return ManualClock
    raise AttributeError(f"module 'hmb.testing' has no attribute {name!r}")
